package pass_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// drawMatrix draws a small matrix: values with many ties and a few that are not finite.
func drawMatrix(t *rapid.T, d weights.DType, rows, cols int) weights.Tensor {
	f := formatOf(d)
	x := matrix(d, cols, make([]float32, rows*cols))
	for i := range rows * cols {
		b := f.FromValue(float32(rapid.IntRange(-6, 6).Draw(t, "value")) / 2)
		if f.IsFloat() && rapid.IntRange(0, 30).Draw(t, "rare") == 0 {
			b = f.MaxFinite + 1 // infinity or NaN
		}
		f.SetElem(x.Data, i, b)
	}
	return x
}

// newZeros returns the values that became zero, and their squares. All other values must not have changed.
func newZeros(t tb, before, after weights.Tensor) (zeroed []int, lost float64) {
	t.Helper()
	f := formatOf(before.DType)
	for i := range before.Len() {
		a, b := f.Elem(before.Data, i), f.Elem(after.Data, i)
		if b == 0 {
			zeroed = append(zeroed, i)
			lost += float64(f.Value(a)) * float64(f.Value(a))
		} else if a != b {
			t.Fatalf("element %d: %#x became %#x", i, a, b)
		}
	}
	return zeroed, lost
}

func finiteCount(x weights.Tensor) int {
	n, f := 0, formatOf(x.DType)
	for i := range x.Len() {
		if f.Finite(f.Elem(x.Data, i)) {
			n++
		}
	}
	return n
}

// zero returns a layer after a step of sparsify.
func zero(t tb, l *pass.Layer, z pass.Zeros) weights.Tensor {
	t.Helper()
	return result(t, l, pass.Sparsify.TensorStep("w", z))
}

// zerosOf lists the candidates of sparsify with a share, and perhaps a shape.
func zerosOf(t tb, l *pass.Layer, share float64, shape ...string) (all []pass.Zeros) {
	t.Helper()
	list, err := pass.Sparsify.Candidates(context.Background(), l, append([]string{strconv.FormatFloat(share, 'g', -1, 64)}, shape...))
	ok(t, err)
	for _, data := range list {
		all = append(all, data.(pass.Zeros))
	}
	return all
}

func TestSparsifyShareIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(1, 20).Draw(t, "rows"), rapid.IntRange(1, 20).Draw(t, "cols")
		x := drawMatrix(t, rapid.SampledFrom(testmodel.DTypes).Draw(t, "type"), rows, cols)
		share := rapid.Float64Range(0.01, 1).Draw(t, "share")
		target := alone(t, x, 0)
		steps := zerosOf(t, target, share, "element")
		z := steps[0]
		zeroed, _ := newZeros(t, x, zero(t, target, z))
		want := min(int(math.Round(share*float64(rows*cols))), finiteCount(x))
		there, _ := newZeros(t, x, x)
		if len(zeroed) != max(want, len(there)) {
			t.Fatalf("%d of %d values are zero, want %d (%+v)", len(zeroed), rows*cols, want, z)
		}
	})
}

// tilesOf lists the elements of every tile in order.
func tilesOf(rows, cols int, tile [2]int) (list [][]int) {
	for r := 0; r < rows; r += tile[0] {
		for c := 0; c < cols; c += tile[1] {
			var t []int
			for i := r; i < min(rows, r+tile[0]); i++ {
				for k := c; k < min(cols, c+tile[1]); k++ {
					t = append(t, i*cols+k)
				}
			}
			list = append(list, t)
		}
	}
	return list
}

// smallestPlainly is smallestTiles by sorting.
func smallestPlainly(x weights.Tensor, tile [2]int, within func(sum, n float64) bool) []int {
	rows, cols := x.Matrix()
	v := values(x)
	type one struct {
		sum, n float64
		elems  []int
	}
	mean := func(o one) float64 { return o.sum / o.n }
	var list []one
	for _, elems := range tilesOf(rows, cols, tile) {
		o := one{elems: elems}
		for _, i := range elems {
			o.sum += v[i] * v[i]
			o.n++
		}
		if o.sum-o.sum == 0 {
			list = append(list, o)
		}
	}
	slices.SortStableFunc(list, func(a, b one) int {
		if mean(a) < mean(b) {
			return -1
		}
		if mean(a) > mean(b) {
			return 1
		}
		return 0
	})
	var sum, n float64
	var zeroed []int
	for _, o := range list {
		sum, n = sum+o.sum, n+o.n
		if !within(sum, n) {
			break
		}
		zeroed = append(zeroed, o.elems...)
	}
	slices.Sort(zeroed)
	return zeroed
}

func TestSparsifyBlocksAreTheSmallestThatFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(1, 40).Draw(t, "rows"), rapid.IntRange(1, 20).Draw(t, "cols")
		tile := rapid.SampledFrom([][2]int{{1, 1}, {2, 3}, {4, 1}, {1, 16}, {16, 16}, {64, 64}}).Draw(t, "tile")
		x := drawMatrix(t, rapid.SampledFrom(testmodel.DTypes).Draw(t, "type"), rows, cols)
		limit := rapid.Float64Range(0, float64(3*rows*cols)).Draw(t, "limit")
		within := func(sum, _ float64) bool { return sum <= limit }
		target := alone(t, x, 0)
		z, sum, n, err := pass.SmallestTiles(context.Background(), target, tile, within)
		ok(t, err)
		f := formatOf(x.DType)
		after := zero(t, target, z)
		want := smallestPlainly(x, tile, within)
		for i := range rows * cols {
			b, zero := f.Elem(x.Data, i), slices.Contains(want, i)
			if zero {
				b = 0
			}
			if f.Elem(after.Data, i) != b {
				t.Fatalf("tile %v, limit %g: element %d is %#x, want %#x (%+v)", tile, limit, i, f.Elem(after.Data, i), b, z)
			}
		}
		if int(n) != len(want) || sum > limit {
			t.Fatalf("%g values of the power %g are taken, want %d values", n, sum, len(want))
		}
	})
}

func TestSparsifyTwoOfFour(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(1, 19).Draw(t, "rows"), rapid.IntRange(1, 19).Draw(t, "cols")
		outAxis := rapid.IntRange(0, 1).Draw(t, "output axis")
		x := drawMatrix(t, rapid.SampledFrom(testmodel.DTypes).Draw(t, "type"), rows, cols)
		f := formatOf(x.DType)
		after := zero(t, alone(t, x, outAxis), pass.Zeros{Pattern: "2:4"})
		inputs, outputs := cols, rows
		at := func(o, i int) int { return o*cols + i }
		if outAxis == 1 {
			inputs, outputs = rows, cols
			at = func(o, i int) int { return i*cols + o }
		}
		want := bytes.Clone(x.Data)
		for o := range outputs {
			for first := 0; first+4 <= inputs; first += 4 {
				group := []int{at(o, first), at(o, first+1), at(o, first+2), at(o, first+3)}
				if slices.ContainsFunc(group, func(i int) bool { return !f.Finite(f.Elem(x.Data, i)) }) {
					continue
				}
				slices.SortStableFunc(group, func(a, b int) int {
					return cmp.Compare(math.Abs(float64(f.Value(f.Elem(x.Data, b)))), math.Abs(float64(f.Value(f.Elem(x.Data, a)))))
				})
				f.SetElem(want, group[2], 0)
				f.SetElem(want, group[3], 0)
			}
		}
		if !bytes.Equal(after.Data, want) {
			t.Fatalf("%x became %x, want %x", x.Data, after.Data, want)
		}
		if again := zero(t, alone(t, after, outAxis), pass.Zeros{Pattern: "2:4"}); string(again.Data) != string(after.Data) {
			t.Fatal("not idempotent")
		}
	})
}

// TestSparsifyTwoOfFourTransposed: inputs that are rows get the zeros of inputs that are columns, also if a program handles a few rows
// at a time.
func TestSparsifyTwoOfFourTransposed(t *testing.T) {
	const inputs, outputs = 14, 6001
	random := rand.New(rand.NewPCG(1, 2))
	rows, cols := make([]float32, inputs*outputs), make([]float32, inputs*outputs)
	for i := range inputs {
		for o := range outputs {
			v := float32(random.IntN(255) - 127)
			rows[i*outputs+o], cols[o*inputs+i] = v, v
		}
	}
	down := values(zero(t, alone(t, matrix(weights.I8, outputs, rows), 1), pass.Zeros{Pattern: "2:4"}))
	across := values(zero(t, alone(t, matrix(weights.I8, inputs, cols), 0), pass.Zeros{Pattern: "2:4"}))
	for i := range inputs {
		for o := range outputs {
			if down[i*outputs+o] != across[o*inputs+i] {
				t.Fatalf("input %d of output %d is %g in rows and %g in columns", i, o, down[i*outputs+o], across[o*inputs+i])
			}
		}
	}
}

// costOfMask returns the cost that ChooseRuns minimises; infinity if the mask zeroes a value that is not finite.
func costOfMask(row []float32, worth float64, zero func(k int) bool) float64 {
	var c float64
	for k, x := range row {
		if zero(k) {
			if x-x != 0 {
				return math.Inf(1)
			}
			c += float64(x)*float64(x) - worth
		}
		if k > 0 && zero(k) != zero(k-1) {
			c += pass.RunBorder * worth
		}
	}
	return c
}

func TestRunsEqualBruteForce(t *testing.T) {
	special := []float32{float32(math.NaN()), float32(math.Inf(-1))}
	rapid.Check(t, func(t *rapid.T) {
		row := rapid.SliceOfN(rapid.OneOf(rapid.Float32Range(-2, 2), rapid.Float32Range(-2, 2), rapid.Just(float32(0)), rapid.SampledFrom(special)), 1, 11).Draw(t, "row")
		worth := rapid.Float64Range(0.001, 4).Draw(t, "worth")
		best := math.Inf(1)
		for mask := range 1 << len(row) {
			best = min(best, costOfMask(row, worth, func(k int) bool { return mask>>k&1 == 1 }))
		}
		chosen := pass.ChooseRuns(row, worth)
		if got := costOfMask(row, worth, func(k int) bool { return chosen[k] }); !(math.Abs(got-best) <= 1e-9) {
			t.Fatalf("%v costs %g, the best mask %g", chosen, got, best)
		}
	})
}

func TestNoShapeLosesMoreThanSingleElements(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(8, 40).Draw(t, "rows"), rapid.IntRange(8, 40).Draw(t, "cols")
		x := drawMatrix(t, rapid.SampledFrom(testmodel.DTypes).Draw(t, "type"), rows, cols)
		share := rapid.Float64Range(0.05, 0.9).Draw(t, "share")
		target := alone(t, x, 0)
		steps := zerosOf(t, target, share)
		var limit float64
		for i, s := range steps {
			zeroed, lost := newZeros(t, x, zero(t, target, s))
			if i == 0 {
				limit = lost
				if s.String() != "elements" || len(zeroed) == 0 {
					t.Fatalf("first come %s", s)
				}
			}
			if lost > limit*(1+1e-12) {
				t.Fatalf("%s lose %g, single elements %g", s, lost, limit)
			}
		}
	})
}

func TestRunsKeepTheirShare(t *testing.T) {
	rng := uint64(1)
	v := make([]float32, 64*256)
	for i := range v {
		rng = rng*6364136223846793005 + 1442695040888963407
		v[i] = float32(int32(rng>>32)) / (1 << 31)
		if i < 256 {
			v[i] *= 1000 // one output with large values
		}
	}
	x := matrix(weights.F32, 256, v)
	for _, share := range []float64{0.05, 0.3, 0.7} {
		target := alone(t, x, 0)
		steps := zerosOf(t, target, share, "runs")
		zeroed, _ := newZeros(t, x, zero(t, target, steps[0]))
		if got := float64(len(zeroed)) / float64(len(v)); got > share || got < share-0.03 {
			t.Errorf("runs zero a share of %.3f, want %.3f", got, share)
		}
	}
}

// TestDamagedSparsifyIsRefused: a step must say once what to zero, in blocks that a program can handle.
func TestDamagedSparsifyIsRefused(t *testing.T) {
	l := alone(t, matrix(weights.BF16, 64, make([]float32, 64*64)), 0)
	block := func(rows, cols int) pass.Zeros { return pass.Zeros{Block: &[2]int{rows, cols}} }
	for _, z := range []pass.Zeros{block(1, 1), block(64, 4096), block(16, 3), {Runs: 0.1}, {Pattern: "2:4"}} {
		_, err := l.Program(t.Context(), pass.Sparsify.TensorStep("w", z))
		ok(t, err)
	}
	twice := block(4, 4)
	twice.Runs = 1
	for _, z := range []pass.Zeros{block(0, 1), block(1, 0), block(3, 1), block(128, 1), block(1, 4097), block(-4, 4), twice, {}, {Runs: -1}, {Pattern: "1:4"}, {Pattern: "2:4", Runs: 1}} {
		if _, err := l.Program(t.Context(), pass.Sparsify.TensorStep("w", z)); !errors.Is(err, plan.ErrInvalid) {
			t.Errorf("%+v: %v", z, err)
		}
	}
}
