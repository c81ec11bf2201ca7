package component

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
)

// inventedFacts returns facts that all differ from the built-in card's.
func inventedFacts() Facts {
	f := Facts{
		Tiles: Tiles{L2: 9e6, CacheCopies: 3, Wave: 20, Smallest: 300, Largest: 9000, ShortSide: 0.6, SharedBy: 4},
		Clock: Clocks{Exponent: cost.Likely{Usual: 1.5, Low: 1.2, High: 1.9}, Overlap: 3, MemoryTime: 0.7, Lowest: 0.4, Step: 50,
			LowestAdvised: 1100},
		RandomMoved: map[arith.Type]float64{},
		SensorScale: 90,
	}
	for i, typ := range arith.Types() {
		f.RandomMoved[typ] = 0.5 + 0.01*float64(i)
	}
	return f
}

// said returns everything that a model with these facts says about a few kernels. The model is fitted to readings.
func said(t *testing.T, f Facts, readings []Reading) (all []any) {
	t.Helper()
	m := &Model{Card: "Invented Q1", PowerLimit: 700, FullClock: 1980, Facts: f, Readings: readings}
	if err := m.Fit(); err != nil {
		t.Fatal(err)
	}
	all = append(all, m.Coefficients, *m.Quality, f.RandomMoved)
	var kernels []Kernel
	for _, g := range []Gemm{{M: 100, N: 80, K: 3000}, {M: 40, N: 20, K: 100}, {M: 8192, N: 8192, K: 4096}, {M: 16, N: 8192, K: 8192, Cold: true}} {
		g.Type, g.Bits, g.Moved = arith.BF16, 1, 0.5
		k, err := g.Kernel("k", &f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, k, m.At(k, 1500))
		kernels = append(kernels, k)
	}
	s, err := m.SplitSequence(kernels)
	if err != nil {
		t.Fatal(err)
	}
	a, err := m.Advise("phase", kernels)
	if err != nil {
		t.Fatal(err)
	}
	starved := *m
	starved.Drawn = 1 // W, less than at any clock
	return append(all, s, a, starved.Clock(kernels))
}

func someReadings(t *testing.T) []Reading {
	draw := rand.New(rand.NewPCG(5, 6))
	return fitted(t, usualCard, true, func() float64 { return 0.002 * draw.NormFloat64() }).Readings
}

// TestEveryFactCounts: if any number among an invented card's facts changes, the model's results change. So each
// number comes from the file.
func TestEveryFactCounts(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and without shared data for the race detector")
	}
	readings := someReadings(t)
	before := said(t, inventedFacts(), readings)
	change := func(name string, v float64) float64 {
		if name == "low" {
			return v / 2
		}
		return 1.1 * v
	}
	leaves := testmodel.EachNumber(t, inventedFacts(), change, func(what string, facts Facts) {
		if reflect.DeepEqual(said(t, facts, readings), before) {
			t.Errorf("%s has no effect", what)
		}
	})
	if leaves < 16+len(arith.Types()) {
		t.Errorf("only %d facts", leaves)
	}
}

// TestInventedCard: kernels and times agree with the definitions of the facts, and the file names no other card.
func TestInventedCard(t *testing.T) {
	f := inventedFacts()
	// Tiles have 100×80 results in waves of 20, so 400 results: 0.6·20 = 12 by 33.3. Four tiles share the longer
	// side.
	k, err := Gemm{Type: arith.BF16, M: 100, N: 80, K: 3000}.Kernel("k", &f)
	if want := 2*100*80*3000*(1./12+12./400/4) + 2*100*80; err != nil || math.Abs(k.Asked/want-1) > 1e-12 {
		t.Errorf("%v bytes asked for, want %v (%v)", k.Asked, want, err)
	}
	// A third of 9 MB holds the operands, so nothing comes from memory.
	if k.Memory != 0 {
		t.Errorf("%v bytes of memory", k.Memory)
	}
	m := &Model{Card: "Invented Q1", PowerLimit: 700, FullClock: 1980, Facts: f, Readings: someReadings(t)}
	if err := m.Fit(); err != nil {
		t.Fatal(err)
	}
	// Memory takes 0.7 of the time of a kernel at the highest rate. The rest adds up by the third power.
	cold := Kernel{Memory: m.Rates["memory"], Seconds: 1, Clock: 1980}
	chip := math.Cbrt(1 - 0.7*0.7*0.7)
	if got, want := m.At(cold, 990).Seconds, math.Cbrt(8*chip*chip*chip+0.7*0.7*0.7); math.Abs(got-want) > 1e-12 {
		t.Errorf("at half the clock %v s, want %v", got, want)
	}
	a, err := m.Advise("phase", []Kernel{{Name: "k", Type: arith.BF16, Ops: 1e12, Asked: 1e9, Bits: 1, Moved: 1, Awake: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if last := a.Settings[len(a.Settings)-1].Clock; last != 1100 || math.Mod(a.Settings[1].Clock, 50) != 0 {
		t.Errorf("clocks %v to %v, want steps of 50 down to 1100 MHz", a.Settings[1].Clock, last)
	}
	file := filepath.Join(t.TempDir(), "components.json")
	if err := m.Write(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"H200", "h200", "62914560", "0.915"} {
		if strings.Contains(string(text), other) {
			t.Errorf("the file has %s", other)
		}
	}
	again, err := Read(file)
	if err != nil || !reflect.DeepEqual(again.Facts, f) {
		t.Errorf("read: %v", err)
	}
	for _, c := range []struct{ from, to, want string }{
		{`"overlap_exponent":3,`, ``, "facts.clock.overlap_exponent is missing"},
		{`"overlap_exponent":3,`, `"overlap_exponent":0,`, "facts.clock.overlap_exponent is 0"},
		{`"smallest_tile_results":300`, `"smallest_tile_results":10000`, "facts.tiles.largest_tile_results is 9000"},
		{`"bf16":0.53,`, ``, "facts.random_moved_bits.bf16 is missing"},
		{`"facts":`, `"fact":`, "facts is missing"},
		{`"components_version":3`, `"components_version":1`, "a file of version 1 must not have the field facts"},
	} {
		testmodel.WriteReplaced(t, file, text, c.from, c.to)
		if _, err := Read(file); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.to, err, c.want)
		}
	}
}

// TestFilesWithoutFacts: files of version 1 were written for any card with the H200's facts, and must give the same
// results. The values are frozen here: if the H200's facts change, version 1 needs its own facts.
func TestFilesWithoutFacts(t *testing.T) {
	frozen := Facts{
		Tiles: Tiles{L2: 60 << 20, CacheCopies: 2, Wave: 128, Smallest: 64 * 16, Largest: 256 * 160, ShortSide: 0.8, SharedBy: 2},
		Clock: Clocks{Exponent: cost.Likely{Usual: 1, Low: 0.75, High: 1.25}, Overlap: 4, MemoryTime: 0.915, Lowest: 0.17, Step: 15,
			LowestAdvised: 600},
		RandomMoved: map[arith.Type]float64{arith.FP32: 0.85, arith.TF32: 0.85, arith.FP16: 0.85, arith.BF16: 0.7, arith.FP16CUDA: 0.85,
			arith.FP8: 0.84, arith.INT8: 1},
		SensorScale: 500,
	}
	m := fitted(t, usualCard, true, nil)
	file := filepath.Join(t.TempDir(), "components.json")
	testmodel.WriteChanged(t, file, m, func(fields map[string]any) {
		delete(fields, "facts")
		fields["components_version"] = 1
	})
	old, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(old.Facts, frozen) {
		t.Errorf("facts of version 1: %+v", old.Facts)
	}
	if !reflect.DeepEqual(old.Facts, m.Facts) || !reflect.DeepEqual(old.Coefficients, m.Coefficients) {
		t.Error("an old file gives other results")
	}
}
