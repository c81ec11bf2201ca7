package stitch

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

func near64(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(a)+math.Abs(b)) }

// TestSpan: weights add up to one. Without a filter each is proportional to the time of the stretch in its cell; with one,
// each equals the integral of the filter's response.
func TestSpan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := cells{step: rapid.Float64Range(0.001, 0.1).Draw(t, "step"), n: rapid.IntRange(1, 30).Draw(t, "n")}
		end := c.step * float64(c.n)
		a := rapid.Float64Range(0, end).Draw(t, "a")
		b := rapid.Float64Range(a, end).Draw(t, "b")
		lag := rapid.SampledFrom([]float64{0, 0.1, 1, 10}).Draw(t, "lag in cells") * c.step
		if !c.within(a, b) {
			t.Fatal("not within")
		}
		s := c.spanOf(a, b, lag)
		if total := floats.Sum(s.share); math.Abs(total-1) > 1e-9 {
			t.Fatalf("%+v adds up to %v", s, total)
		}
		if b-a < 1e-3*c.step {
			return
		}
		const parts = 400
		for i, share := range s.share {
			from := c.step * float64(s.first+i)
			to := from + c.step
			if i == 0 {
				from = math.Inf(-1)
			}
			if s.first+i == c.n-1 {
				to = math.Inf(1)
			}
			want := 0.0
			for k := range parts { // moments of the stretch
				m := a + (b-a)*(float64(k)+0.5)/parts
				want += (lagging(to-m, lag) - lagging(from-m, lag)) / parts
			}
			if math.Abs(share-want) > 5e-3 {
				t.Fatalf("cell %d of %+v: %v, want %v", i, s, share, want)
			}
		}
	})
}

// lagging returns the weight, in a filtered value, of the input that is older than −t.
func lagging(t, lag float64) float64 {
	switch {
	case t >= 0:
		return 1
	case lag == 0:
		return 0
	}
	return math.Exp(t / lag)
}

func TestSpanBeyond(t *testing.T) {
	c := cells{step: 0.5, n: 4}
	for _, s := range [][2]float64{{-0.1, 1}, {1, 2.1}, {1, 0.5}} {
		if c.within(s[0], s[1]) {
			t.Errorf("%v lies within two seconds", s)
		}
	}
	if s := c.spanOf(-2, 1, 0); !near64(s.mean([]float64{90, 300, 0, 0}), (2*90+0.5*90+0.5*300)/3) {
		t.Errorf("power before the first cell: %+v", s)
	}
	if s := c.spanOf(1.5, 3.5, 0); !near64(s.mean([]float64{0, 0, 0, 7}), 7) {
		t.Errorf("power after the last cell: %+v", s)
	}
}

// drawn returns random rows on some cells.
func drawn(t *rapid.T) (cells, []row) {
	c := cells{step: 1, n: rapid.IntRange(4, 12).Draw(t, "n")}
	rows := make([]row, rapid.IntRange(3, 12).Draw(t, "rows"))
	for i := range rows {
		a := rapid.Float64Range(0, float64(c.n)).Draw(t, "a")
		b := rapid.Float64Range(a, float64(c.n)).Draw(t, "b")
		rows[i] = row{span: c.spanOf(a, b, rapid.Float64Range(0, 2).Draw(t, "lag")), watts: rapid.Float64Range(0, 1000).Draw(t, "watts"), run: i % 3, weight: rapid.Float64Range(0.1, 2).Draw(t, "weight")}
	}
	return c, rows
}

// TestAssemble compares the banded normal equations with AᵀWA and AᵀWy.
func TestAssemble(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, rows := drawn(t)
		a, w, y := mat.NewDense(len(rows), c.n, nil), mat.NewDiagDense(len(rows), nil), mat.NewVecDense(len(rows), nil)
		for i, r := range rows {
			for k, share := range r.share {
				a.Set(i, r.first+k, share)
			}
			w.SetDiag(i, r.weight)
			y.SetVec(i, r.watts)
		}
		var wa, want mat.Dense
		wa.Mul(w, a)
		want.Mul(a.T(), &wa)
		var right mat.VecDense
		right.MulVec(wa.T(), y)
		s := assemble(c, rows, once)
		for i := range c.n {
			if !near64(s.right[i], right.AtVec(i)) {
				t.Fatalf("right side %d: %v, want %v", i, s.right[i], right.AtVec(i))
			}
			unit := make([]float64, c.n)
			unit[i] = 1
			for k, v := range s.matrix.times(unit) {
				if math.Abs(v-want.At(k, i)) > 1e-4*(1+math.Abs(v)) { // neighbours are tied faintly
					t.Fatalf("(%d, %d): %v, want %v", k, i, v, want.At(k, i))
				}
			}
		}
	})
}

// TestLinear: the trace is linear in the readings.
func TestLinear(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, rows := drawn(t)
		lambda := rapid.Float64Range(1e-3, 10).Draw(t, "lambda")
		bend := roughness(c, []float64{2}, 0)
		p, ok := assemble(c, rows, once).solve(bend, lambda)
		if !ok {
			t.Fatal("no trace")
		}
		for i := range rows {
			rows[i].watts += 100
		}
		q, ok := assemble(c, rows, once).solve(bend, lambda)
		if !ok {
			t.Fatal("no trace")
		}
		for i := range p {
			if math.Abs(q[i]-p[i]-100) > 0.1 {
				t.Fatalf("cell %d: %v, and with 100 W more %v", i, p[i], q[i])
			}
		}
	})
}

// TestRoughness: straight lines between breaks have no penalty; anything else has.
func TestRoughness(t *testing.T) {
	c := cells{step: 0.1, n: 12}
	straight := []float64{1, 2, 3, 4, 50, 49, 48, 47, 10, 10, 10, 10}
	cost := func(p, breaks []float64) float64 {
		total := 0.0
		for i, x := range roughness(c, breaks, 4).times(p) {
			total += x * p[i]
		}
		return total
	}
	if x := cost(straight, []float64{0.4, 0.8}); x != 0 {
		t.Errorf("lines between breaks cost %v", x)
	}
	for _, breaks := range [][]float64{nil, {0.4}, {0.8}, {0.3, 0.8}} {
		if x := cost(straight, breaks); x < 1 {
			t.Errorf("jumps cost %v with breaks %v", x, breaks)
		}
	}
	within := []float64{1, 1, 1, 1, 4, 11, 11, 11, 11, 11, 11, 11}
	if x := cost(within, []float64{0.47}); math.Abs(x) > 1e-4 {
		t.Errorf("a jump within a cell costs %v", x)
	}
	if x := cost(within, []float64{0.42}); x < 1 {
		t.Errorf("a cell that does not fit its jump costs %v", x)
	}
}

func TestFullWidth(t *testing.T) {
	for _, test := range []struct {
		kernel []float64
		i      int
		want   float64
	}{
		{[]float64{0, 0, 1, 0, 0}, 2, 1},
		{[]float64{0, 0.5, 1, 0.5, 0}, 2, 2},
		{[]float64{0, 1, 1, 1, 0}, 2, 3},
		{[]float64{0, 0, 0, 1, 0}, 1, 3},
		{[]float64{1, 1, 0, 0, 0}, 0, 2},
	} {
		if w := fullWidth(test.kernel, test.i); !near64(w, test.want) {
			t.Errorf("%v about %d: %v, want %v", test.kernel, test.i, w, test.want)
		}
	}
}
