package rounding

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/weights"
	"pgregory.net/rapid"
)

// target returns the target of a value in a column, by the definition.
func target(w, q sgemm.Matrix, f *Factor, n, i int) float64 {
	t := float64(w.Row(n)[f.Order[i]])
	for j := range i {
		k := f.Order[j]
		t += (float64(w.Row(n)[k]) - float64(q.Row(n)[k])) * float64(f.U.Row(j)[i])
	}
	return t
}

// TestTargets: every value is the nearest to its target, for more than a leaf, a chunk and a half of columns and
// rows.
func TestTargets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, k := rapid.IntRange(1, 300).Draw(t, "n"), rapid.IntRange(1, 70).Draw(t, "k")
		seed := rapid.Uint64().Draw(t, "seed")
		h, w := secondMoment(seed, k, 2*k), normal(seed, n, k)
		f, err := NewFactor(context.Background(), h, FactorOptions{})
		if err != nil {
			t.Fatal(err)
		}
		zero := rapid.IntRange(0, k).Draw(t, "zero")
		q, err := Round(context.Background(), w, f, &coarse{}, Options{Workers: 1, Zero: zero})
		if err != nil {
			t.Fatal(err)
		}
		for row := range n {
			for i, col := range f.Order {
				v, want := float64(q.Row(row)[col]), target(w, q, f, row, i)
				if i < zero && v != 0 {
					t.Fatalf("(%d, %d) is %g in a column to be zeroed", row, col, v)
				}
				if d := math.Abs(v - want); i >= zero && d > 0.25+1e-4*(1+math.Abs(want)) {
					t.Fatalf("(%d, %d) is %g, its target %g", row, col, v, want)
				}
			}
		}
	})
}

func TestFeedbackLowersError(t *testing.T) {
	const n, k = 64, 96
	ctx := context.Background()
	f8, h := format(t, weights.F8E4M3), secondMoment(5, k, 4*k)
	w := storedNormal(6, n, k, format(t, weights.BF16))
	f := must(NewFactor(ctx, h, FactorOptions{}))(t)
	exps := make([]int, n)
	for i := range exps {
		exps[i] = -2
	}
	for _, c := range []Chooser{Grid{f8, exps}, Bits{f8, 2}, Stored{f8}} {
		plain := must(Measure(ctx, w, must(Round(ctx, w, Uncompensated(diagonalOf(h)), c, Options{}))(t), h, 0))(t)
		fed := must(Measure(ctx, w, must(Round(ctx, w, f, c, Options{}))(t), h, 0))(t)
		if !(fed.Decibels() > plain.Decibels()+1) {
			t.Errorf("%T: %.1f dB with feedback, %.1f dB without", c, fed.Decibels(), plain.Decibels())
		}
	}
}

func TestWorkers(t *testing.T) {
	const n, k = 700, 400
	ctx := context.Background()
	bf16 := format(t, weights.BF16)
	h, w := secondMoment(1, k, k/2), storedNormal(2, n, k, bf16)
	coupled := Trellis{Format: bf16, Rates: risingRates(bf16), Lambda: 1e-3, Scale: 10}
	coupled.Rates.Differ, coupled.Rates.Sign, coupled.Rates.Run = 0.2, 0.1, 4
	alone := coupled
	alone.Rates = risingRates(bf16)
	for _, c := range []Chooser{Grid{bf16, make([]int, n)}, alone, coupled} {
		t.Run(fmt.Sprintf("%T", c), func(t *testing.T) {
			var q sgemm.Matrix
			var order []int
			for workers := 1; workers <= 4; workers++ {
				p := must(Prune(ctx, w, h, PruneOptions{Workers: workers}))(t)
				f := must(NewFactor(ctx, h, FactorOptions{Workers: workers, First: p.Order[:20]}))(t)
				got := must(Round(ctx, w, f, c, Options{Workers: workers, Zero: 10}))(t)
				if workers == 1 {
					q, order = got, p.Order
					continue
				}
				if fmt.Sprint(order) != fmt.Sprint(p.Order) {
					t.Errorf("%d workers eliminate in another order", workers)
				}
				if !sameBits(q, got) {
					t.Errorf("%d workers choose other values", workers)
				}
				if a, b := must(Measure(ctx, w, q, h, 1))(t), must(Measure(ctx, w, q, h, workers))(t); a != b {
					t.Errorf("%d workers measure %v, one %v", workers, b, a)
				}
			}
		})
	}
}

// TestNotFinite: values that are not finite do not change. Their row is otherwise rounded as if they were zero, at no
// cost.
func TestNotFinite(t *testing.T) {
	const n, k = 40, 50
	ctx := context.Background()
	bf16 := format(t, weights.BF16)
	h, w := secondMoment(1, k, 2*k), storedNormal(2, n, k, bf16)
	w.Row(3)[7] = float32(math.NaN())
	w.Row(3)[0] = float32(math.Inf(-1))
	w.Row(39)[49] = float32(math.Inf(1))
	coupled := Trellis{Format: bf16, Rates: risingRates(bf16), Lambda: 1e-3, Scale: 10}
	coupled.Rates.Differ, coupled.Rates.Run = 0.2, 4
	alone := coupled
	alone.Rates = risingRates(bf16)
	f := must(NewFactor(ctx, h, FactorOptions{}))(t)
	for _, c := range []Chooser{
		Grid{bf16, make([]int, n)}, Bits{bf16, 3}, Stored{bf16}, alone, coupled, Sparse{Stored{bf16}, make([]bool, n*k)},
	} {
		q := must(Round(ctx, w, f, c, Options{Zero: 10}))(t)
		for i, v := range w.Data {
			if finite := v-v == 0; finite != (q.Data[i]-q.Data[i] == 0) || !finite && v == v && q.Data[i] != v {
				t.Errorf("%T: %g at %d became %g", c, v, i, q.Data[i])
			}
		}
		if l := must(Measure(ctx, w, q, h, 0))(t); !(l.Error >= 0) || !(l.Signal > 0) || math.IsInf(l.Error, 0) {
			t.Errorf("%T: measured %v", c, l)
		}
	}
	if p := must(Prune(ctx, w, h, PruneOptions{}))(t); !(p.Error[k] > 0) || math.IsInf(p.Error[k], 0) {
		t.Errorf("pruning all columns costs %g", p.Error[k])
	}
}

func TestMeasure(t *testing.T) {
	h, w, q := secondMoment(1, 40, 80), normal(2, 300, 40), normal(3, 300, 40)
	l := must(Measure(context.Background(), w, q, h, 0))(t)
	for _, c := range []struct{ got, want float64 }{
		{l.Signal, trace(w, h, 0)}, {l.Error, trace(finiteDifference(w, q), h, 0)},
		{l.Decibels(), 10 * math.Log10(l.Signal/l.Error)},
	} {
		if math.Abs(c.got-c.want) > 1e-5*math.Abs(c.want) {
			t.Errorf("measured %g, want %g", c.got, c.want)
		}
	}
	if l := must(Measure(context.Background(), w, w, h, 0))(t); !math.IsInf(l.Decibels(), 1) {
		t.Errorf("%g dB without an error", l.Decibels())
	}
}
