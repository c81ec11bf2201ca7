package search

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// drawCurve draws points. The first point leaves the layer unchanged.
func drawCurve(t *rapid.T) curve {
	c := curve{{Energy: 1}}
	for range rapid.IntRange(0, 6).Draw(t, "points") {
		c = append(c, point{
			Error:  math.Exp2(rapid.Float64Range(-20, 2).Draw(t, "error")),
			Energy: rapid.Float64Range(0.2, 1.1).Draw(t, "energy"),
		})
		if rapid.IntRange(0, 4).Draw(t, "tie") == 0 {
			c = append(c, point{Error: c[len(c)-1].Error, Energy: rapid.SampledFrom([]float64{0.5, 0.75, 1}).Draw(t, "energy")})
		}
	}
	return c
}

// TestHull: error rises and energy falls along the hull, no point lies above the line between its neighbours, and at
// every lambda the hull has the best point.
func TestHull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := curve(rapid.Permutation(drawCurve(t)).Draw(t, "points"))
		h := c.hull()
		for i := 1; i < len(h); i++ {
			if !(h[i-1].Error < h[i].Error && h[i-1].Energy > h[i].Energy) {
				t.Fatalf("points %d and %d of %+v", i-1, i, h)
			}
			if i > 1 && slope(h[i-2], h[i-1]) > slope(h[i-1], h[i])*(1-1e-9) {
				t.Fatalf("point %d of %+v lies above its neighbours' line", i-1, h)
			}
		}
		lambda := math.Exp2(rapid.Float64Range(-40, 20).Draw(t, "lambda"))
		best := math.Inf(1)
		for _, p := range c {
			best = min(best, p.Error+lambda*p.Energy)
		}
		if p := h[h.at(lambda)]; p.Error+lambda*p.Energy > best*(1+1e-12) {
			t.Fatalf("at a lambda of %g, the hull %+v gives point %+v; the least cost of the candidates %+v is %g", lambda, h, p, c, best)
		}
	})
}

// slope returns the change of energy per error. It is negative.
func slope(a, b point) float64 { return (b.Energy - a.Energy) / (b.Error - a.Error) }

func drawAllocator(t *rapid.T) *allocator {
	tr := &allocator{}
	for range rapid.IntRange(1, 4).Draw(t, "layers") {
		tr.share = append(tr.share, rapid.Float64Range(0.01, 1).Draw(t, "share"))
		tr.sensitivity = append(tr.sensitivity, math.Exp2(rapid.Float64Range(-6, 6).Draw(t, "sensitivity")))
		tr.curves = append(tr.curves, drawCurve(t).hull())
	}
	return tr
}

// all calls fn with every choice of a point of each layer.
func (tr *allocator) all(fn func(loss, energy float64)) {
	var next func(i int, loss, energy float64)
	next = func(i int, loss, energy float64) {
		if i == len(tr.curves) {
			fn(loss, energy)
			return
		}
		for _, p := range tr.curves[i] {
			next(i+1, loss+tr.sensitivity[i]*p.Error, energy+tr.share[i]*p.Energy)
		}
	}
	next(0, 0, 0)
}

// reached returns the points of a hull that are best at realistic values of lambda.
func (c curve) reached() (list curve) {
	h := c.hull()
	for i := 1; i < len(h); i++ {
		if lambda := -1 / slope(h[i-1], h[i]); lambda > math.Exp2(-39) && lambda < math.Exp2(19) {
			list = append(list, h[i])
		}
	}
	return list
}

// TestAllocationWithinABudget compares with every possible choice: the allocation keeps the budget, no choice of at
// most the same loss saves more, and it is the last point of the hull within the budget.
func TestAllocationWithinABudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := drawAllocator(t)
		budget := math.Exp2(rapid.Float64Range(-22, 12).Draw(t, "budget"))
		o := tr.within(budget)
		loss, energy := 0.0, 0.0
		for i, k := range o.choice {
			loss += tr.sensitivity[i] * tr.curves[i][k].Error
			energy += tr.share[i] * tr.curves[i][k].Energy
		}
		if loss != o.loss || energy != o.energy || o.loss > budget {
			t.Fatalf("the allocation has loss %g and energy %g, its choice gives %g and %g, the budget is %g", o.loss, o.energy, loss, energy, budget)
		}
		var every curve
		tr.all(func(loss, energy float64) {
			every = append(every, point{Error: loss, Energy: energy})
			if loss <= o.loss && energy < o.energy-1e-12 {
				t.Fatalf("the allocation has loss %g and energy %g, but another has %g and %g", o.loss, o.energy, loss, energy)
			}
		})
		for _, p := range every.reached() {
			if p.Error <= budget && o.energy > p.Energy+1e-9 {
				t.Fatalf("the allocation has energy %g, but the hull has a point within %g: %+v", o.energy, budget, p)
			}
		}
	})
}

// TestAllocationAtALambda: at any lambda, no choice has a lower loss + lambda·energy.
func TestAllocationAtALambda(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := drawAllocator(t)
		lambda := math.Exp2(rapid.Float64Range(-30, 20).Draw(t, "lambda"))
		o := tr.at(lambda)
		taken := o.loss + lambda*o.energy
		tr.all(func(loss, energy float64) {
			if v := loss + lambda*energy; v < taken*(1-1e-12) {
				t.Fatalf("the allocation has loss %g and energy %g at a lambda of %g, but another has %g and %g", o.loss, o.energy, lambda, loss, energy)
			}
		})
		if more := tr.at(2 * lambda); more.loss < o.loss || more.energy > o.energy {
			t.Fatalf("at twice lambda %+v is taken, else %+v", more, o)
		}
	})
}

// TestAllocationBetweenLosses: between two losses, the best choice up to aim is taken, else the next one above.
func TestAllocationBetweenLosses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := drawAllocator(t)
		var every curve
		tr.all(func(loss, energy float64) { every = append(every, point{Error: loss, Energy: energy}) })
		every = every.hull()
		if most := every[len(every)-1].Error; math.Abs(tr.most()-most) > 1e-12*most {
			t.Fatalf("at most %g is said to be spent, and %g can be", tr.most(), most)
		}
		limit := rapid.SampledFrom([]float64{tr.most(), tr.most() / 3, math.Inf(1)}).Draw(t, "limit")
		low, high := rapid.Float64Range(0, 0.5).Draw(t, "low")*tr.most(), math.Nextafter(limit, math.Inf(1))
		aim := math.Exp2(rapid.Float64Range(-22, 12).Draw(t, "aim"))
		o, found := tr.between(low, aim, high)
		if found && !(o.loss > low && o.loss < high) {
			t.Fatalf("a loss of %g is taken between %g and %g", o.loss, low, high)
		}
		for _, p := range every.reached() {
			inside := p.Error > low*(1+1e-9) && p.Error < high*(1-1e-9)
			if inside && !found || inside && p.Error <= aim && o.energy > p.Energy+1e-9 {
				t.Fatalf("found %v: %+v; between %g and %g, at most %g, there is %+v", found, o, low, high, aim, p)
			}
		}
	})
}

func TestAllocationOfNothing(t *testing.T) {
	tr := &allocator{[]float64{1}, []float64{3}, []curve{{{Error: 0.1, Energy: 1}, {Error: 0.2, Energy: 0.5}}}}
	for budget, want := range map[float64]int{0: 0, 0.29: 0, 0.3: 0, 0.61: 1, math.Inf(1): 1} {
		if o := tr.within(budget); o.choice[0] != want {
			t.Errorf("a budget of %g takes %+v", budget, o)
		}
	}
}
