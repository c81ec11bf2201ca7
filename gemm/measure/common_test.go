package measure

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// placesMatter is a simulated card on which addresses change power by 2 %.
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

// TestOtherForms: a candidate with scales in another form runs in its own memory, and the result says so.
func TestOtherForms(t *testing.T) {
	base, _ := pair()
	other := candidate("scaled", base.Products...)
	other.Products = slices.Clone(other.Products)
	other.Products[0].W.Scales = &gemm.Scales{Rows: 48, Cols: 64, Values: []float32{1}}
	r, err := Compare(t.Context(), placesMatter(1), base, []Candidate{other}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if told := strings.Join(r.Warnings, ""); !slices.Equal(r.Apart, []string{"scaled"}) || !strings.Contains(told, "scaled ran in its own memory, because its codes or scales have another form than normal's") {
		t.Errorf("apart %q, warnings %q", r.Apart, told)
	}
	if v := r.Variants[0]; contains(v.Interval, 1) || !contains(r.Null.Interval, 1) {
		t.Errorf("in other memory within %v, the null within %v", v.Interval, r.Null.Interval)
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
