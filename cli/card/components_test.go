package card

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lowtoggle/lowtoggle/bench/probe"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/component"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
)

// TestSignature: splits add up, agree with the measurement, and are printed within a line's width.
func TestSignature(t *testing.T) {
	list, err := probe.Stresses(64)
	if err != nil {
		t.Fatal(err)
	}
	fitted, err := probe.Components(t.Context(), measure.Simulated(power.DefaultSim()), filepath.Join(t.TempDir(), "c.json"), list, probe.ComponentOptions{})
	if err != nil {
		t.Fatal(err)
	}
	builtIn, err := component.Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	draw := rand.New(rand.NewPCG(1, 2))
	product := func(zero bool) cuda.Product {
		p := cuda.Product{Name: "p", Problem: gemm.Problem{M: 64, N: 96, K: 128, Type: arith.BF16}}
		p.X, p.W = gemm.NewMatrix(arith.BF16.Operand(), 64, 128), gemm.NewMatrix(arith.BF16.Operand(), 96, 128)
		for _, o := range []gemm.Matrix{p.X, p.W} {
			f, _ := o.DType.Format()
			for i := range o.Rows * o.Cols {
				if !zero {
					f.SetElem(o.Data, i, f.FromValue(float32(draw.NormFloat64())))
				}
			}
		}
		return p
	}
	for _, c := range []struct {
		model *component.Model
		cold  bool
		why   string // why there is no advice
	}{{fitted, false, "it must be at most half of the best naive model's error"}, {fitted, true, "the best naive model's"}, {builtIn, false, ""}} {
		d := measure.Dissected{Name: "phase", Cold: c.cold, Before: []cuda.Product{product(false), product(false)}, After: []cuda.Product{product(true), product(true)}, Seconds: 1e-4, Clock: 1500, AfterSeconds: 1e-4, AfterClock: 1600}
		sig, err := (&measure.Splitter{Model: c.model, From: "a file"}).Split(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		if (sig.Advice == nil) != (c.why != "") || (sig.AfterAdvice == nil) != (c.why != "") || !strings.Contains(sig.Unfit, c.why) {
			t.Errorf("cold %v: advice %v, refused because of %q", c.cold, sig.Advice, sig.Unfit)
		}
		for _, s := range []component.Split{sig.Before, *sig.After} {
			sum := 0.0
			for _, share := range s.Parts {
				sum += share.Watts
			}
			if math.Abs(sum-s.Watts) > 1e-6 || !(s.Watts > 0) {
				t.Errorf("cold %v: parts sum to %v of %v", c.cold, sum, s.Watts)
			}
		}
		if moved := sig.After.Of(component.Multipliers).Bits; moved > 1 {
			t.Errorf("cold %v: the bits of zeros draw %v W", c.cold, moved)
		}
		var out bytes.Buffer
		printSignatures(&out, []*measure.Signature{sig})
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > term.Width {
				t.Errorf("%d characters: %s", n, line)
			}
		}
		text := strings.Join(strings.Fields(out.String()), " ")
		if refused := strings.Contains(text, "clock: phase: no clock is advised: ") && strings.Contains(text, c.why); !strings.Contains(text, "phase, after") || strings.Contains(text, "NaN") ||
			refused != (c.why != "") || strings.Contains(text, "the conversion changes energy") == refused {
			t.Error(out.String())
		}
	}
}

// TestComponentsPicture checks that docs/power-components.svg shows the built-in components.
func TestComponentsPicture(t *testing.T) {
	m, err := component.Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	r := componentsJSON{Model: m}
	r.assess()
	goldenfile.Same(t, "../../docs/power-components.svg", r.picture().SVG())
}

// TestSplitterOf: the splitter is from the named file, else the default file, else the built-in one. An unknown card
// has none.
func TestSplitterOf(t *testing.T) {
	t.Chdir(t.TempDir())
	if m, why, err := splitterOf("", "no such card"); err != nil || m != nil || !strings.Contains(why, "calibrate --components") {
		t.Fatalf("%+v, %q, %v", m, why, err)
	}
	list, err := probe.Stresses(64)
	if err != nil {
		t.Fatal(err)
	}
	card := measure.Simulated(power.DefaultSim())
	write := func(file string, kernels int) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := probe.ComponentOptions{Progress: func(done, _ int, _ component.Reading) {
			if done == kernels {
				cancel()
			}
		}}
		if _, err := probe.Components(ctx, card, file, list, o); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	const usual = calibrateOut + componentsPostfix
	write("begun.json", 2)
	if err := os.Rename("begun.json", usual); err != nil {
		t.Fatal(err)
	}
	for anew, want := range map[bool]string{false: "2 readings are kept in " + usual + "; run the same command to continue", true: "; run the same command without --anew to continue"} {
		if err := (&componentsJSON{File: usual}).brokenOff(context.Canceled, anew); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), want) {
			t.Errorf("broken off: %v", err)
		}
	}
	if err := (&componentsJSON{File: "nowhere.json"}).brokenOff(context.Canceled, false); !strings.Contains(err.Error(), "nothing was written") {
		t.Errorf("broken off at once: %v", err)
	}
	name := card.Card().Info().Name
	if m, why, err := splitterOf("", name); err != nil || m != nil || !strings.Contains(why, "is incomplete") {
		t.Errorf("%+v, %q, %v", m, why, err)
	}
	for _, c := range []struct{ file, card, want string }{
		{usual, name, "the file is incomplete"}, {usual, "another", "the file is of " + name}, {"nowhere", name, "--components: "},
	} {
		if m, why, err := splitterOf(c.file, c.card); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %+v, %q, %v", c, m, why, err)
		}
	}
	write("whole.json", 0)
	if m, why, err := splitterOf("whole.json", name); err != nil || m != nil || !strings.Contains(why, "whole.json is not used") {
		t.Errorf("%+v, %q, %v", m, why, err)
	}
	if err := os.Rename("whole.json", usual); err != nil {
		t.Fatal(err)
	}
	if m, why, err := splitterOf("", name); err != nil || m != nil || !strings.Contains(why, usual+" is not used") {
		t.Errorf("%+v, %q, %v", m, why, err)
	}
	if err := os.WriteFile(usual, []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	if m, why, err := splitterOf("", name); err == nil || !strings.Contains(err.Error(), "move this file away") {
		t.Errorf("%+v, %q, %v", m, why, err)
	}
}
