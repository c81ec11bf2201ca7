package measure

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/weights"
)

// placesMatter returns a simulated card on which addresses change power by 2 %.
func placesMatter(seed uint64) Machine {
	o := power.DefaultSim()
	o.Seed, o.Addresses, o.Leakage, o.DipRate = seed, 0.02, 0, 0
	return Simulated(o)
}

// TestAddressesDoNotCount: pooled over runs, the null comparison and a known ratio are free of the effect of addresses. The
// same weights in their own memory are off by that effect.
func TestAddressesDoNotCount(t *testing.T) {
	base, variants := pair()
	apart := candidate("apart", base.Products...)
	apart.Apart = true
	truth := simStill / (simStill + simToggling*naiveToggling(base.Products[0].W))
	var null, zeros, own []float64
	for seed := range uint64(30) {
		r, err := Compare(t.Context(), placesMatter(seed), base, append(variants, apart), Options{Meter: power.Options{Seed: seed, Time: 20 * time.Second, Precision: 1e-6}})
		if err != nil {
			t.Fatal(err)
		}
		if !r.SameMemory || !slices.Equal(r.Apart, []string{"apart"}) || len(r.Warnings) > 0 {
			t.Fatalf("same memory %v, apart %q, warnings %q", r.SameMemory, r.Apart, r.Warnings)
		}
		null = append(null, r.Null.RelativeEnergy-1)
		zeros = append(zeros, r.Variants[0].RelativeEnergy/truth-1)
		own = append(own, r.Variants[1].RelativeEnergy-1)
	}
	for name, c := range map[string]struct {
		off  []float64
		want float64
	}{"null": {null, 0}, "zeros": {zeros, 0}, "apart": {own, 0.02}} {
		mean, dev := stat.MeanStdDev(c.off, nil)
		if err := dev / math.Sqrt(float64(len(c.off))); err > 5e-4 || math.Abs(mean-c.want) > 4*err {
			t.Errorf("%s is off by %.3f %% ± %.3f, want %v", name, 100*mean, 100*err, 100*c.want)
		}
	}
}

// TestOtherForms: a candidate of another type, or with scales in another form, runs in its own memory, and the result says so. If
// it needs another kernel, it says that.
func TestOtherForms(t *testing.T) {
	base, _ := pair()
	scaled, typed := slices.Clone(base.Products), slices.Clone(base.Products)
	scaled[0].W.Scales = &gemm.Scales{Rows: 48, Cols: 64, Values: []float32{1}}
	typed[0].Problem.Type = arith.FP16
	typed[0].X, typed[0].W = normal(weights.F16, 32, 64, 0, 1, 0), normal(weights.F16, 48, 64, 0, 0.02, 1)
	for tile, want := range map[int]string{
		1: "other ran in its own memory, because its weights have another type or form than normal's",
		2: "other uses different kernels from normal",
	} {
		for _, products := range [][]cuda.Product{scaled, typed} {
			m := &counting{Machine: placesMatter(1), wrap: func(i int, b Batch) Batch {
				k := cuda.Kernel{Tile: 1}
				if i == 2 {
					k.Tile = tile
				}
				return &faulty{Batch: b, starts: 1e6, kernels: []cuda.Kernel{k}}
			}}
			r, err := Compare(t.Context(), m, base, []Candidate{candidate("other", products...)}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if told := strings.Join(r.Warnings, ""); !slices.Equal(r.Apart, []string{"other"}) || !strings.Contains(told, want) || !r.Valid {
				t.Errorf("apart %q, warnings %q, invalid %q", r.Apart, told, r.Invalid)
			}
			if v := r.Variants[0]; contains(v.Interval, 1) || !contains(r.Null.Interval, 1) {
				t.Errorf("in other memory within %v, the null within %v", v.Interval, r.Null.Interval)
			}
		}
	}
}

// TestEqualCopies: cold candidates of different sizes have the stacks and copies of the smallest.
func TestEqualCopies(t *testing.T) {
	base, _ := pair()
	typed := slices.Clone(base.Products)
	typed[0].Problem.Type = arith.FP8
	typed[0].X, typed[0].W = normal(weights.F8E4M3, 32, 64, 0, 1, 0), normal(weights.F8E4M3, 48, 64, 0, 1, 1)
	m := &counting{Machine: placesMatter(1)}
	if _, err := Compare(t.Context(), m, base, []Candidate{candidate("other", typed...)}, Options{Cold: true, Meter: short.Meter}); err != nil {
		t.Fatal(err)
	}
	stack := gemm.Stack(1, len(typed[0].W.Data))
	for _, o := range m.options {
		if o.Stack != stack || o.ColdBytes != stack*len(typed[0].W.Data) {
			t.Errorf("a stack of %d, copies for %d bytes", o.Stack, o.ColdBytes)
		}
	}
}

// TestSeriesInOneMemory: the points of a series have the baseline's addresses.
func TestSeriesInOneMemory(t *testing.T) {
	s, err := RunSeries(t.Context(), placesMatter(1), surveyed, point("base", 1), []Point{point("a", 1), point("zeros", 0), point("b", 1)}, SeriesOptions{Every: 1})
	if err != nil {
		t.Fatal(err)
	}
	base := product("", surveyed.M, surveyed.N, surveyed.K, 1, 1)
	for i, want := range []float64{1, simStill / (simStill + simToggling*naiveToggling(base.W)), 1} {
		near(t, s.Relative()[i].Name, s.Relative()[i].Energy, want, 0.01)
	}
}
