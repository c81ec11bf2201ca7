package measure

import (
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/weights"
)

// naiveToggling is toggling, bit by bit.
func naiveToggling(w gemm.Matrix) float64 {
	bytes := w.DType.Bits() / 8 * w.Cols
	toggles, all := 0, 0
	for i := range bytes * (w.Rows - 1) {
		for bit := range 8 {
			all++
			if w.Data[i]>>bit&1 != w.Data[i+bytes]>>bit&1 {
				toggles++
			}
		}
	}
	if all == 0 {
		return 0
	}
	return float64(toggles) / float64(all)
}

func TestToggling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom([]weights.DType{weights.F32, weights.BF16, weights.F8E4M3}).Draw(t, "type")
		w := gemm.NewMatrix(d, rapid.IntRange(1, 9).Draw(t, "rows"), rapid.IntRange(1, 9).Draw(t, "columns"))
		copy(w.Data, rapid.SliceOfN(rapid.Byte(), len(w.Data), len(w.Data)).Draw(t, "data"))
		if have, want := toggling(w), naiveToggling(w); have != want {
			t.Fatalf("%v, want %v", have, want)
		}
	})
}

// TestSimulatedLoads: a load has the power of its weights' toggles, and each product counts in proportion to its time.
func TestSimulatedLoads(t *testing.T) {
	m := Simulated(still())
	zeros, normal := product("zeros", 64, 64, 64, 0, 1), product("normal", 64, 64, 64, 1, 1)
	watts := func(products ...cuda.Product) float64 {
		r, err := Compare(t.Context(), m, candidate("c", products...), nil, short)
		if err != nil {
			t.Fatal(err)
		}
		return r.Baseline.Watts
	}
	toggled := simStill + simToggling*naiveToggling(normal.W)
	near(t, "watts of zeros", watts(zeros), simStill, 1e-3)
	near(t, "watts of normal weights", watts(normal), toggled, 1e-3)
	near(t, "watts of both", watts(zeros, normal), (simStill+toggled)/2, 1e-3)
	if m.Platform() != nil {
		t.Errorf("platform %v of no GPU", m.Platform())
	}
	for range 2 {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSimulatedRefuses operands that do not fit their problem, as a GPU does.
func TestSimulatedRefuses(t *testing.T) {
	p := product("w", 8, 16, 32, 1, 1)
	p.Problem.Type = arith.FP16
	if b, err := Simulated(still()).NewBatch(t.Context(), "b", []cuda.Product{p}, cuda.Options{}); err == nil || b != nil {
		t.Errorf("batch %v, error %v", b, err)
	}
}

// TestSimulatedGoverned: the card's settings can be changed, and a later card with the same State has them.
func TestSimulatedGoverned(t *testing.T) {
	o := still()
	o.State = filepath.Join(t.TempDir(), "card")
	m, err := OpenSimulated(o)
	if err != nil {
		t.Fatal(err)
	}
	g, err := power.Govern(m.Card())
	if err != nil {
		t.Fatal(err)
	}
	if err := g.SetPowerLimit(321); err != nil {
		t.Fatal(err)
	}
	if w := *Simulated(o).Card().Info().PowerLimit; w != 321 {
		t.Errorf("the next one is limited to %v W", w)
	}
	if err := os.WriteFile(o.State, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if m, err := OpenSimulated(o); m != nil || err == nil {
		t.Errorf("opened %v, %v", m, err)
	}
}
