package cli

import (
	"bytes"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lowtoggle/lowtoggle/bench/probe"
	"github.com/lowtoggle/lowtoggle/cost/component"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// TestSignature: splits add up, hold to what was measured, and are printed within a line's width.
func TestSignature(t *testing.T) {
	list, err := probe.Stresses(64)
	if err != nil {
		t.Fatal(err)
	}
	m, err := probe.Components(t.Context(), measure.Simulated(power.H200Sim()), filepath.Join(t.TempDir(), "c.json"), list, probe.ComponentOptions{})
	if err != nil {
		t.Fatal(err)
	}
	draw := rand.New(rand.NewPCG(1, 2))
	product := func(zero bool) cuda.Product {
		p := cuda.Product{Name: "p", Problem: gemm.Problem{M: 64, N: 96, K: 128, Type: gemm.BF16}}
		p.X, p.W = gemm.NewMatrix(gemm.BF16.Operand(), 64, 128), gemm.NewMatrix(gemm.BF16.Operand(), 96, 128)
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
	for _, cold := range []bool{false, true} {
		d := dissected{name: "phase", cold: cold, before: []cuda.Product{product(false), product(false)}, after: []cuda.Product{product(true), product(true)}, seconds: 1e-4, clock: 1500}
		sig, err := sign(t.Context(), m, d)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []component.Split{sig.Before, *sig.After} {
			sum := 0.0
			for _, share := range s.Parts {
				sum += share.Watts
			}
			if math.Abs(sum-s.Watts) > 1e-6 || !(s.Watts > 0) {
				t.Errorf("cold %v: parts sum to %v of %v", cold, sum, s.Watts)
			}
		}
		if moved := sig.After.Of(component.Multipliers).Bits; moved > 1 {
			t.Errorf("cold %v: the bits of zeros draw %v W", cold, moved)
		}
		var out bytes.Buffer
		printSignatures(&out, []*signature{sig})
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > lineWidth {
				t.Errorf("%d characters: %s", n, line)
			}
		}
		if !strings.Contains(out.String(), "phase, after") || !strings.Contains(out.String(), "the transform changes energy") || strings.Contains(out.String(), "NaN") {
			t.Error(out.String())
		}
	}
	sig, note, err := signatureOf(t.Context(), "no such card", dissected{})
	if sig != nil || err != nil || !strings.Contains(note, "calibrate --components") {
		t.Errorf("%v, %q, %v", sig, note, err)
	}
}
