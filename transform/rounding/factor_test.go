package rounding

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/weights"
	"pgregory.net/rapid"
)

// meanDiagonal returns the mean of h's diagonal.
func meanDiagonal(h sgemm.Matrix) (sum float64) {
	for i := range h.Rows {
		sum += float64(h.Row(i)[i])
	}
	return sum / float64(h.Rows)
}

func TestFactorGivesMatrixBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(1, 150).Draw(t, "k")
		tokens := rapid.IntRange(1, 2*k).Draw(t, "tokens") // often singular
		damp := rapid.SampledFrom([]float64{1e-1, 1e-2, 1e-3}).Draw(t, "damp")
		h := secondMoment(rapid.Uint64().Draw(t, "seed"), k, tokens)
		first := rapid.Permutation(naturalOrder(k)).Draw(t, "order")[:rapid.IntRange(0, k).Draw(t, "first")]
		f, err := NewFactor(context.Background(), h, FactorOptions{Damp: damp, First: first})
		if err != nil {
			t.Fatal(err)
		}
		added := damp * meanDiagonal(h)
		for i, d := range f.D {
			if d < added {
				t.Errorf("D[%d] is %g, less than the damping %g", i, d, added)
			}
			for j := range k {
				want := float64(h.Row(f.Order[i])[f.Order[j]])
				if i == j {
					want += added
				}
				var got float64
				for m := range k {
					got += float64(f.U.Row(i)[m]) * f.D[m] * float64(f.U.Row(j)[m])
				}
				scale := math.Sqrt(float64(h.Row(f.Order[i])[f.Order[i]])*float64(h.Row(f.Order[j])[f.Order[j]])) + added
				if math.Abs(got-want) > 2e-6*scale {
					t.Fatalf("UDUᵀ at (%d, %d) is %g, want %g", i, j, got, want)
				}
			}
			for j, u := range f.U.Row(i)[:i+1] {
				if j < i && u != 0 || j == i && u != 1 {
					t.Fatalf("U at (%d, %d) is %g", i, j, u)
				}
			}
		}
	})
}

// TestFactorOfSingular: with almost no damping, rounding determines the pivots. They are kept above the rounding
// noise, and the factor still gives the matrix to the precision of float32.
func TestFactorOfSingular(t *testing.T) {
	for _, tokens := range []int{1, 30, 100} {
		const k = 150
		h := secondMoment(9, k, tokens)
		f := must(NewFactor(context.Background(), h, FactorOptions{Damp: 1e-6}))(t)
		w := normal(1, 20, k)
		c := &coarse{}
		q := must(Round(context.Background(), w, f, c, Options{Workers: 1}))(t)
		if want := trace(finiteDifference(w, q), h, 1e-6*meanDiagonal(h)); c.cost > 2*want+1e-3*trace(w, h, 0) {
			t.Errorf("%d tokens: the decisions cost %g, and the total error is %g", tokens, c.cost, want)
		}
	}
}

// TestCostsOfDecisionsAddUp: the costs of single decisions add up to the total error.
func TestCostsOfDecisionsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, n := rapid.SampledFrom([]int{1, 2, 16, 17, 63, 64, 65, 150, 400}).Draw(t, "k"), rapid.IntRange(1, 20).Draw(t, "n")
		seed := rapid.Uint64().Draw(t, "seed")
		h, w := secondMoment(seed, k, 2*k), normal(seed, n, k)
		f, err := NewFactor(context.Background(), h, FactorOptions{Damp: 1e-2})
		if err != nil {
			t.Fatal(err)
		}
		c := &coarse{}
		q, err := Round(context.Background(), w, f, c, Options{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		e := finiteDifference(w, q)
		want := trace(e, h, 1e-2*meanDiagonal(h))
		if math.Abs(c.cost-want) > 1e-4*want {
			t.Fatalf("the decisions cost %g, and the total error is %g", c.cost, want)
		}
	})
}

// coarse rounds to halves, and sums the costs.
type coarse struct{ cost float64 }

func (c *coarse) Begin(n, k int) (func(Column), error) {
	return func(col Column) {
		for i, t := range col.T {
			v := math.RoundToEven(2*float64(t)) / 2
			col.T[i] = float32(v)
			c.cost += col.D * (float64(t) - v) * (float64(t) - v)
		}
	}, nil
}

func TestOrder(t *testing.T) {
	h := sgemm.Dense(5, 5, nil)
	for i, v := range []float32{2, 3, 2, 5, 0} {
		h.Row(i)[i] = v
	}
	f := must(NewFactor(context.Background(), h, FactorOptions{First: []int{4, 1}}))(t)
	for i, want := range []int{4, 1, 3, 0, 2} {
		if f.Order[i] != want {
			t.Fatalf("order %v: column %d at %d, want %d", f.Order, f.Order[i], i, want)
		}
	}
}

func TestNoInputs(t *testing.T) {
	f := must(NewFactor(context.Background(), sgemm.Dense(3, 3, nil), FactorOptions{}))(t)
	if f.U.Data != nil || f.D[0] != 0 || f.Order[2] != 2 {
		t.Errorf("factor of zeros is %+v", f)
	}
	bf16 := format(t, weights.BF16)
	w := storedNormal(1, 9, 3, bf16)
	q := must(Round(context.Background(), w, f, Trellis{Format: bf16, Rates: risingRates(bf16), Lambda: 1, Scale: 1}, Options{}))(t)
	for i, v := range q.Data {
		if v != 0 {
			t.Fatalf("element %d is %g where errors are free and zero is cheapest", i, v)
		}
	}
}

func TestFactorErrors(t *testing.T) {
	with := func(i, j int, v float32) sgemm.Matrix {
		h := secondMoment(1, 4, 8)
		h.Row(i)[j] = v
		return h
	}
	for _, c := range []struct {
		h    sgemm.Matrix
		o    FactorOptions
		want string
	}{
		{sgemm.Dense(2, 3, nil), FactorOptions{}, "square"},
		{with(2, 1, float32(math.NaN())), FactorOptions{}, "NaN at (2, 1)"},
		{with(3, 3, float32(math.Inf(1))), FactorOptions{}, "+Inf at (3, 3)"},
		{with(3, 3, -1), FactorOptions{}, "not negative"},
		{with(3, 3, 0), FactorOptions{}, "semidefinite"},
		{with(0, 0, 1), FactorOptions{Damp: -1}, "damping"},
		{with(0, 0, 1), FactorOptions{First: []int{1, 1}}, "twice"},
		{with(0, 0, 1), FactorOptions{First: []int{4}}, "is not from 0 to"},
	} {
		if _, err := NewFactor(context.Background(), c.h, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}

func TestEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	h, w := secondMoment(1, 200, 400), normal(1, 300, 200)
	f := must(NewFactor(ctx, h, FactorOptions{}))(t)
	cancel()
	_, factor := NewFactor(ctx, h, FactorOptions{})
	_, prune := Prune(ctx, w, h, PruneOptions{})
	_, measure := Measure(ctx, w, w, h, 0)
	_, round := Round(ctx, w, f, Stored{format(t, weights.BF16)}, Options{})
	for _, err := range []error{factor, prune, measure, round} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v after the end", err)
		}
	}
}
