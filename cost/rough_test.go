package cost

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/weights"
)

// The side of the synthesised matrices.
const side = 512

// reading is one measured row: what was done to normal weights, and the relative energies.
// physics.md's tables: "Operands have roles" (8192³, deviation 1) and "A trained model's own
// layers", whose weights are stood in for by normal values of a trained layer's deviation.
type reading struct {
	name                  string
	sigma                 float64
	stationary, streaming float64
	change                func(r *rand.Rand, w []float64)
}

const layerSigma = 0.025

var readings = []reading{
	{"one constant", 1, 0.93, 0.69, each(func(*rand.Rand, float64) float64 { return 0.7 })},
	{"all rows identical", 1, 0.97, 0.72, repeatRows(side)},
	{"rows in runs of 4 identical", 1, 0.99, 0.83, repeatRows(4)},
	{"4 bits truncated", 1, 0.96, 0.95, each(func(_ *rand.Rand, v float64) float64 { return dropBits(v, 4, 0) })},
	{"7 bits truncated", 1, 0.94, 0.92, each(func(_ *rand.Rand, v float64) float64 { return dropBits(v, 7, 0) })},
	{"random half zero", 1, 0.94, 0.97, each(func(r *rand.Rand, v float64) float64 { return v * float64(r.IntN(2)) })},
	{"half zero in blocks", 1, 0.92, 0.91, zeroBlocks},
	{"small integers", 1, 0.91, 0.92, each(func(_ *rand.Rand, v float64) float64 { return math.Round(v) })},
	{"mean shifted by 8σ", 1, 0.97, 0.92, each(func(_ *rand.Rand, v float64) float64 { return v + 8 })},
	{"random sign, one magnitude", 1, 0.96, 0.88, each(func(_ *rand.Rand, v float64) float64 { return math.Copysign(0.7, v) })},
	{"absolute values", 1, 0.99, 0.99, each(func(_ *rand.Rand, v float64) float64 { return math.Abs(v) })},
	{"4 bits rounded", layerSigma, 0.944, 0.966, each(func(_ *rand.Rand, v float64) float64 { return dropBits(v, 4, 1<<3) })},
	{"5 bits rounded", layerSigma, 0.948, 0.951, each(func(_ *rand.Rand, v float64) float64 { return dropBits(v, 5, 1<<4) })},
	{"grid of σ/16", layerSigma, 0.964, 0.959, grid(1. / 16)},
	{"grid of σ/8", layerSigma, 0.944, 0.952, grid(1. / 8)},
	{"grid of σ/4", layerSigma, 0.929, 0.939, grid(1. / 4)},
	{"half pruned", layerSigma, 0.971, 0.965, prune},
}

func each(f func(r *rand.Rand, v float64) float64) func(*rand.Rand, []float64) {
	return func(r *rand.Rand, w []float64) {
		for i := range w {
			w[i] = f(r, w[i])
		}
	}
}

func repeatRows(run int) func(*rand.Rand, []float64) {
	return func(_ *rand.Rand, w []float64) {
		for n := range side {
			copy(w[n*side:(n+1)*side], w[n/run*run*side:])
		}
	}
}

// dropBits clears the k lowest mantissa bits of a BF16 after adding to them.
func dropBits(v float64, k int, add uint32) float64 {
	f := format(weights.BF16)
	return float64(f.Value((f.FromValue(float32(v)) + add) &^ (1<<k - 1)))
}

// zeroBlocks clears every other 64×64 block.
func zeroBlocks(_ *rand.Rand, w []float64) {
	for i := range w {
		if (i/side/64+i%side/64)%2 == 0 {
			w[i] = 0
		}
	}
}

// grid rounds to multiples of the power of two next to step·σ; normal rows all have the same.
func grid(step float64) func(*rand.Rand, []float64) {
	s := math.Exp2(math.Round(math.Log2(layerSigma * step)))
	return each(func(_ *rand.Rand, v float64) float64 { return math.Round(v/s) * s })
}

// prune clears the half of smallest magnitude.
func prune(r *rand.Rand, w []float64) {
	const median = 0.6745 * layerSigma
	each(func(_ *rand.Rand, v float64) float64 {
		if math.Abs(v) < median {
			return 0
		}
		return v
	})(r, w)
}

// synthesise makes the activity of a changed normal BF16 matrix.
func synthesise(t *testing.T, sigma float64, change func(*rand.Rand, []float64)) Activity {
	t.Helper()
	f := format(weights.BF16)
	r := rand.New(rand.NewPCG(1, 3))
	w := make([]float64, side*side)
	for i := range w {
		w[i] = float64(f.Value(f.FromValue(float32(sigma * r.NormFloat64()))))
	}
	change(r, w)
	data := make([]byte, 2*len(w))
	for i, v := range w {
		f.SetElem(data, i, f.FromValue(float32(v)))
	}
	a, err := Measure(context.Background(), tensor(f.DType, side, side, data), 1)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// named is what was done to the weights of one reading.
func named(name string) func(*rand.Rand, []float64) {
	return readings[slices.IndexFunc(readings, func(r reading) bool { return r.name == name })].change
}

func unchanged(*rand.Rand, []float64) {}

func (r reading) energy(role Role) float64 {
	return [...]float64{Stationary: r.stationary, Streaming: r.streaming}[role]
}

// invert is the power at which the model has the given energy, and energy's slope there.
func (m prefillModel) invert(energy float64) (power, slope float64) {
	if energy > capEnergy {
		slope = m.slope() / capBend
		return m.knee() + (energy-capEnergy)/slope, slope
	}
	return (energy - m.floor) / m.slope(), m.slope()
}

// fitted are the features that a role's fit may use. In a streaming operand only neighbouring
// outputs meet; given the two others, the fit would spend them on single readings.
var fitted = [...][]int{
	Stationary: {signToggles, changes, mantissaToggles, zeroBorders, nonzeros, mantissaTogglesK, mantissaOnes},
	Streaming:  {signToggles, changes, mantissaToggles, zeroBorders, nonzeros},
}

// fit finds coefficients by least squares of energy, linearised at each reading, under the
// constraint (a heavy row) that random data have power 1.
func (m prefillModel) fit(use []int, x []features, energies []float64) features {
	const heavy = 1e3
	a := mat.NewDense(len(x)+1, featureCount, nil)
	b := mat.NewVecDense(len(x)+1, nil)
	for i, f := range x {
		power, slope := m.invert(energies[i])
		for j, v := range f {
			a.Set(i, j, slope*v)
		}
		b.SetVec(i, slope*power)
	}
	for j := range featureCount {
		if j != zeroBorders {
			a.Set(len(x), j, heavy)
		}
	}
	b.SetVec(len(x), heavy)
	return features(nonNegativeLeastSquares(a, b, use))
}

// nonNegativeLeastSquares solves min |a·x − b|, x ≥ 0: the best of all sets of columns whose
// unconstrained solution is not negative. The optimum is among them, and there are few columns.
func nonNegativeLeastSquares(a *mat.Dense, b *mat.VecDense, use []int) (best [featureCount]float64) {
	rows, _ := a.Dims()
	least := math.Inf(1)
	for set := 1; set < 1<<len(use); set++ {
		var cols []int
		for i, j := range use {
			if set>>i&1 == 1 {
				cols = append(cols, j)
			}
		}
		sub := mat.NewDense(rows, len(cols), nil)
		for i, j := range cols {
			sub.SetCol(i, mat.Col(nil, j, a))
		}
		var x, residual mat.VecDense
		if x.SolveVec(sub, b) != nil || mat.Min(&x) < 0 {
			continue
		}
		residual.MulVec(sub, &x)
		residual.SubVec(&residual, b)
		if n := mat.Norm(&residual, 2); n < least {
			least, best = n, [featureCount]float64{}
			for i, j := range cols {
				best[j] = x.AtVec(i)
			}
		}
	}
	return best
}

// The table in rough.go is the fit to the readings, and its intervals are what leaving readings
// out one at a time shows.
func TestRoughIsItsFit(t *testing.T) {
	for role := Stationary; role <= Streaming; role++ {
		m := prefill[role]
		var x []features
		var energies []float64
		for _, r := range readings {
			x = append(x, synthesise(t, r.sigma, r.change).features(0))
			energies = append(energies, r.energy(role))
		}
		want := m
		want.coefficients = m.fit(fitted[role], x, energies)
		for i, c := range want.coefficients {
			if math.Abs(c-m.coefficients[i]) > 0.002 {
				t.Errorf("%v: coefficient %d is %.3f, the fit %.3f", role, i, m.coefficients[i], c)
			}
		}
		squares := 0.0
		for i := range x {
			rest := m
			rest.coefficients = m.fit(fitted[role], without(x, i), without(energies, i))
			e := rest.energy(rest.power(x[i])) - energies[i]
			t.Logf("%v, left out: %-28s %+.1f points", role, readings[i].name, 100*e)
			squares += e * e
		}
		if half := 2 * math.Sqrt(squares/float64(len(x))); math.Abs(half-m.halfWidth) > 0.002 {
			t.Errorf("%v: half width %.3f, leaving out says %.3f", role, m.halfWidth, half)
		}
	}
}

func without[T any](s []T, i int) []T { return append(append([]T(nil), s[:i]...), s[i+1:]...) }

func TestRoughAgainstReadings(t *testing.T) {
	for role := Stationary; role <= Streaming; role++ {
		var predicted, measured, misses []float64
		for _, r := range readings {
			e := Rough{}.Energy(synthesise(t, r.sigma, r.change), 0, role, DefaultWorkload)
			predicted, measured = append(predicted, e.Relative), append(measured, r.energy(role))
			miss := math.Abs(e.Relative - r.energy(role))
			misses = append(misses, miss)
			t.Logf("%v: %-28s measured %.3f predicted %.3f", role, r.name, r.energy(role), e.Relative)
			if miss > 0.035 {
				t.Errorf("%v, %s: predicted %.3f, measured %.3f", role, r.name, e.Relative, r.energy(role))
			}
		}
		mean, corr := stat.Mean(misses, nil), stat.Correlation(predicted, measured, nil)
		t.Logf("%v: mean absolute error %.2f points, correlation %.2f", role, 100*mean, corr)
		if mean > 0.015 || corr < 0.8 {
			t.Errorf("%v: mean absolute error %.4f, correlation %.2f", role, mean, corr)
		}
	}
}

// exponentToggles is the mean over scales.
func TestExponentToggles(t *testing.T) {
	var rates []float64
	for exp := -8.0; exp <= 0; exp += 0.25 {
		rates = append(rates, synthesise(t, math.Exp2(exp), unchanged).RowRates().Exponent)
	}
	mean := stat.Mean(rates, nil)
	t.Logf("mean %.3f", mean)
	if math.Abs(mean-exponentToggles) > 0.02 {
		t.Errorf("exponent toggles %.3f on average, the predictor has %.3f", mean, exponentToggles)
	}
}

// Decode has two readings besides zeros.
func TestRoughDecode(t *testing.T) {
	decode := Workload{Decode: 1}
	for name, want := range map[string]float64{"4 bits rounded": 0.952, "grid of σ/4": 0.942} {
		e := Rough{}.Energy(synthesise(t, layerSigma, named(name)), 0, Stationary, decode)
		t.Logf("%s: measured %.3f predicted %.3f", name, want, e.Relative)
		if want < e.Interval[0] || want > e.Interval[1] {
			t.Errorf("%s: measured %.3f, predicted %v", name, want, e.Interval)
		}
	}
}

// What is coarser is cheaper, in either role and phase.
func TestRoughOrder(t *testing.T) {
	for _, order := range [][]func(*rand.Rand, []float64){
		{unchanged, readings[11].change, readings[12].change},                      // bits rounded away
		{unchanged, readings[13].change, readings[14].change, readings[15].change}, // grids
		{unchanged, named("half zero in blocks"), func(_ *rand.Rand, w []float64) { clear(w) }},
	} {
		for role := Stationary; role <= Streaming; role++ {
			for _, w := range []Workload{{Prefill: 1}, {Decode: 1}, {0.5, 0.5}} {
				last := math.Inf(1)
				for i, change := range order {
					e := Rough{}.Energy(synthesise(t, layerSigma, change), 0, role, w).Relative
					if e >= last {
						t.Errorf("%v, %v: step %d costs %.4f, the step before %.4f", role, w, i, e, last)
					}
					last = e
				}
			}
		}
	}
}

// The scale that relative energy is measured on: zeros cost the ceiling's share, normal values of
// any format 1 within 2 % (exponent toggles vary with the scale), and a matrix and its transpose the same in prefill.
func TestRoughScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := format(rapid.SampledFrom(dtypes).Draw(t, "dtype"))
		role := rapid.SampledFrom([]Role{Stationary, Streaming}).Draw(t, "role")
		p := rapid.Float64Range(0, 1).Draw(t, "prefill")
		w := Workload{p, 1 - p}
		sigma := 16.0 // of I8
		if f.IsFloat() {
			sigma = math.Exp2(rapid.Float64Range(-4, -0.5).Draw(t, "log2 sigma"))
		}
		const rows, cols = 96, 160
		data, flipped := make([]byte, rows*cols*f.Bits/8), make([]byte, rows*cols*f.Bits/8)
		energy := func(data []byte, rows, cols, outAxis int, w Workload) float64 {
			a, err := Measure(context.Background(), tensor(f.DType, rows, cols, data), 1)
			if err != nil {
				t.Fatal(err)
			}
			return Rough{}.Energy(a, outAxis, role, w).Relative
		}
		if e, want := energy(data, rows, cols, 0, w), (Rough{}).Ceiling(role, w); math.Abs(e-want) > 1e-12 {
			t.Fatalf("zeros cost %v, the ceiling is %v", e, want)
		}
		fillNormal(f, data, sigma)
		if e := energy(data, rows, cols, 0, w); math.Abs(e-1) > 0.02 {
			t.Fatalf("normal values cost %.4f", e)
		}
		for i := range rows * cols {
			if i%7 == 0 {
				f.SetElem(data, i, 0)
			}
			f.SetElem(flipped, i%cols*rows+i/cols, f.Elem(data, i))
		}
		e, ef := energy(data, rows, cols, 0, Workload{Prefill: 1}), energy(flipped, cols, rows, 1, Workload{Prefill: 1})
		if math.Abs(e-ef) > 0.003 {
			t.Fatalf("a matrix costs %.4f, its transpose %.4f", e, ef)
		}
	})
}

// Whatever a tensor holds, an estimate is a number inside its interval and says where it is from.
func TestRoughIsAlwaysANumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := format(rapid.SampledFrom(dtypes).Draw(t, "dtype"))
		rows, cols := rapid.IntRange(0, 4).Draw(t, "rows"), rapid.IntRange(0, 4).Draw(t, "cols")
		data := elements(t, f, rows*cols)
		a, err := Measure(context.Background(), tensor(f.DType, rows, cols, data), 1)
		if err != nil {
			t.Fatal(err)
		}
		role := rapid.SampledFrom([]Role{Stationary, Streaming}).Draw(t, "role")
		e := Rough{}.Energy(a, rapid.IntRange(0, 1).Draw(t, "outAxis"), role, Workload{0.5, 0.5})
		if !(e.Interval[0] < e.Relative && e.Relative < e.Interval[1] && e.Relative < 3) || !strings.HasPrefix(e.Calibration, "rough") {
			t.Fatalf("%+v of %+v", e, a)
		}
	})
}
