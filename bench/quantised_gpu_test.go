package bench

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

var (
	quantisedOut  = flag.String("quantised", "", "measure quantised layers and write the results to this folder")
	quantisedSim  = flag.Bool("quantised-simulated", false, "run on a simulated card: the figures mean nothing")
	quantisedTime = flag.Duration("quantised-time", 30*time.Second, "time of each comparison")
	quantisedSpan = flag.Duration("quantised-window", 500*time.Millisecond, "length of a reading, and of the wait before a load that draws more power than the one before")
	quantisedRuns = flag.String("quantised-series", "", "comma-separated texts; only series whose names contain one of them are measured")
	quantisedOnly = flag.String("quantised-patterns", "", "patterns to measure of those whose names contain one of these texts, with commas between")
)

// quantisedSeries are patterns of a layer that are compared with each other.
type quantisedSeries struct {
	name   string
	typ    arith.Type
	tokens int
	role   cost.Role
	times  float64 // of the time of a comparison
	make   func(t *testing.T, rows int) []quantised
	leave  string // patterns that are not measured
}

func quantisedSeriesList() []quantisedSeries {
	channel := func(t *testing.T, rows int) []quantised { return fp8Patterns(t, rows, 1, quantisedCols) }
	block := func(t *testing.T, rows int) []quantised { return fp8Patterns(t, rows, 128, 128) }
	tensor := func(t *testing.T, rows int) []quantised { return fp8Patterns(t, rows, rows, quantisedCols) }
	passes := func(format string) func(*testing.T, int) []quantised {
		return func(t *testing.T, rows int) []quantised { return passPatterns(t, format, rows) }
	}
	return []quantisedSeries{
		{"int4-prefill", arith.BF16, 4096, cost.Stationary, 1.6, int4Patterns, ""},
		{"int4-streaming-prefill", arith.BF16, 4096, cost.Streaming, 1.6, int4Patterns, "even"},
		{"int4-decode", arith.BF16, 16, cost.Stationary, 1, int4Patterns, ""},
		{"fp8-tensor-decode", arith.FP8, 16, cost.Stationary, 1, tensor, ""},
		{"fp8-block-prefill", arith.FP8, 4096, cost.Streaming, 1, block, ""},
		{"fp8-block-decode", arith.FP8, 16, cost.Stationary, 1, block, ""},
		{"fp8-channel-prefill", arith.FP8, 4096, cost.Streaming, 1, channel, ""},
		{"passes-channel-decode", arith.FP8, 16, cost.Stationary, 0.93, passes("fp8"), "grid"},
		{"passes-channel-prefill", arith.FP8, 4096, cost.Streaming, 1, passes("fp8"), "round,grid,zero"},
		{"passes-block-prefill", arith.FP8, 4096, cost.Streaming, 1, passes("fp8-block"), "round,grid,zero"},
		{"passes-block-decode", arith.FP8, 16, cost.Stationary, 0.93, passes("fp8-block"), "grid"},
	}
}

// activations are random, and shared by the products of a series.
func (s quantisedSeries) activations(t *testing.T) gemm.Matrix {
	t.Helper()
	spec := pattern.Spec{DType: s.typ.Operand(), Rows: s.tokens, Cols: quantisedCols, Seed: 1}
	p, err := pattern.Parse("normal(0,1)")
	if err != nil {
		t.Fatal(err)
	}
	x, err := p.Generate(t.Context(), spec, runtime.GOMAXPROCS(0))
	if err != nil {
		t.Fatal(err)
	}
	return gemm.Matrix{DType: spec.DType, Rows: s.tokens, Cols: quantisedCols, Data: x}
}

// product returns the product of a pattern.
func (s quantisedSeries) product(x gemm.Matrix, q quantised) cuda.Product {
	return cuda.Product{
		Name:    q.name,
		Problem: gemm.Problem{M: s.tokens, N: q.w.Rows, K: quantisedCols, Type: s.typ, Streaming: s.role == cost.Streaming},
		X:       x, W: q.w,
	}
}

// names reports whether the name contains one of a list of comma-separated texts.
func names(list, name string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(text string) bool { return strings.Contains(name, text) })
}

// TestGPUQuantisedEnergy measures quantised layers. It skips without -quantised.
func TestGPUQuantisedEnergy(t *testing.T) {
	if *quantisedOut == "" {
		t.Skip("-quantised FOLDER measures")
	}
	m, err := measure.Open(0)
	if *quantisedSim {
		m, err = measure.Simulated(power.DefaultSim()), nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	made := map[string][]quantised{}
	var selfTest *power.SelfTest
	for _, s := range quantisedSeriesList() {
		kind := s.name[:strings.LastIndex(s.name, "-")]
		if !names(*quantisedRuns, s.name) {
			continue
		}
		if made[kind] == nil {
			made[kind] = s.make(t, quantisedRows)
		}
		var all []measure.Candidate
		x := s.activations(t)
		for i, q := range made[kind] {
			if i > 0 && (!names(*quantisedOnly, q.name) || s.leave != "" && names(s.leave, q.name)) {
				continue
			}
			all = append(all, measure.Candidate{Name: fmt.Sprintf("%s, %.1f dB", q.name, q.snr), Products: []cuda.Product{s.product(x, q)}})
		}
		settle := 150 * time.Millisecond
		if s.tokens > cost.DecodeTokens {
			settle = 250 * time.Millisecond // at the power cap
		}
		o := measure.Options{Cold: s.tokens == cost.DecodeTokens, Meter: power.Options{
			Time: time.Duration(s.times * float64(*quantisedTime)), WarmUp: 3 * time.Second, Window: *quantisedSpan, Settle: settle,
			CapSettle: *quantisedSpan, SelfTest: selfTest, Date: time.Now().UTC(), Command: strings.Join(os.Args, " "),
		}}
		r, err := measure.Compare(t.Context(), m, all[0], all[1:], o)
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
		if r == nil {
			continue
		}
		selfTest = r.SelfTest
		t.Logf("%s: %v; %.0f Tflop/s, null %v, invalid %v", s.name, r.Products[0].Kernel, r.Teraflops, r.Null.Interval, r.Invalid)
		for _, v := range r.Variants {
			t.Logf("  %-55s %.4f %.4f, time %.4f", v.Name, v.RelativeEnergy, v.Interval, v.RelativeTime)
		}
		data, err := json.MarshalIndent(r, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(*quantisedOut, s.name+".json"), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
