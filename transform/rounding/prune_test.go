package rounding

import (
	"context"
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"pgregory.net/rapid"
)

// TestPruningIsWhatRoundDoes: Prune's error for z columns is that of Round.
func TestPruningIsWhatRoundDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, n := rapid.IntRange(1, 150).Draw(t, "k"), rapid.IntRange(1, 20).Draw(t, "n")
		seed := rapid.Uint64().Draw(t, "seed")
		h, w := secondMoment(seed, k, 2*k), normal(seed, n, k)
		ctx := context.Background()
		p, err := Prune(ctx, w, h, PruneOptions{Damp: 1e-2})
		if err != nil {
			t.Fatal(err)
		}
		z := rapid.IntRange(0, k).Draw(t, "z")
		f, err := NewFactor(ctx, h, FactorOptions{Damp: 1e-2, First: p.Order[:z]})
		if err != nil {
			t.Fatal(err)
		}
		q, err := Round(ctx, w, f, exactly{}, Options{Zero: z})
		if err != nil {
			t.Fatal(err)
		}
		// All other values hit their targets, so this is the total error.
		want := trace(finiteDifference(w, q), h, 1e-2*meanDiagonal(h))
		if math.Abs(p.Error[z]-want) > 1e-3*want {
			t.Fatalf("zeroing %d of %d columns costs %g, predicted %g", z, k, want, p.Error[z])
		}
	})
}

// exactly chooses the targets themselves.
type exactly struct{}

func (exactly) Begin(n, k int) (func(Column), error) { return func(Column) {}, nil }

func TestPruningOfSingularInputs(t *testing.T) {
	const n, k = 64, 96
	h, w := secondMoment(3, k, k/2), normal(4, n, k)
	ctx := context.Background()
	p := must(Prune(ctx, w, h, PruneOptions{Damp: 1e-5}))(t)
	f := must(NewFactor(ctx, h, FactorOptions{Damp: 1e-5, First: p.Order[:k/2]}))(t)
	q := must(Round(ctx, w, f, Stored{format(t, weights.F32)}, Options{Zero: k / 2}))(t)
	l := must(Measure(ctx, w, q, h, 0))(t)
	if l.Error > 1e-4*l.Signal {
		t.Errorf("zeroing compensated columns leaves %.1f dB", l.Decibels())
	}
	if more := p.Error[k/2+10] * p.Scale / (n * k); more < 10*l.Error/l.Signal {
		t.Errorf("10 columns more leave an error of %.3g, no more than before", more)
	}
	if z := p.Best(1e-3 * n); z < k/2 || z == k {
		t.Errorf("Best zeroes %d of %d columns; half of them cost nothing", z, k)
	}
}

func TestBest(t *testing.T) {
	p := &Pruning{Error: []float64{0, 1, 3, 3, 10, 11}, Scale: 2}
	for _, c := range []struct {
		gain float64
		want int
	}{{0, 0}, {1.9, 0}, {2.1, 3}, {100, 5}, {-1, 0}} {
		if got := p.Best(c.gain); got != c.want {
			t.Errorf("with a gain of %g %d columns, want %d", c.gain, got, c.want)
		}
	}
}

// TestEliminationOrder: each pivot has the largest remaining variance.
func TestEliminationOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(1, 140).Draw(t, "k")
		h := secondMoment(rapid.Uint64().Draw(t, "seed"), k, 2*k)
		damp := 1e-2 * meanDiagonal(h)
		order, err := eliminationOrder(context.Background(), h, damp, 2)
		if err != nil {
			t.Fatal(err)
		}
		f, err := NewFactor(context.Background(), h, FactorOptions{Damp: 1e-2, First: order})
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; i < k; i++ { // each was preferred to those eliminated before it
			if f.D[i-1] > f.D[i]*(1+1e-3) {
				t.Fatalf("variance %g is eliminated before %g", f.D[i-1], f.D[i])
			}
		}
	})
}
