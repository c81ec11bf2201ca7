package vector

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// guard surrounds rows, so that a kernel that reads or writes beyond one shows.
var guard = float32(math.Float32frombits(0x7fc12345))

// guarded are copies of a row between guards, and whether the guards are still there.
func guarded(row []float32) (inside []float32, intact func() bool) {
	all := slices.Concat(slices.Repeat([]float32{guard}, 16), row, slices.Repeat([]float32{guard}, 16))
	return all[16 : 16+len(row) : 16+len(row)], func() bool {
		for i, v := range all {
			if (i < 16 || i >= 16+len(row)) && math.Float32bits(v) != math.Float32bits(guard) {
				return false
			}
		}
		return true
	}
}

// sameBits returns the first place where two rows differ; -1 where they do not. All NaNs count as equal.
func sameBits(a, b []float32) int {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) && !(a[i] != a[i] && b[i] != b[i]) {
			return i
		}
	}
	return -1
}

// TestVectorKernelsHaveTheBitsOfGo tests rows of every length up to some vectors, with values of every size and values that are
// not finite.
func TestVectorKernelsHaveTheBitsOfGo(t *testing.T) {
	if !vectors {
		t.Skip("this machine or build has no vector kernels")
	}
	r := rand.New(rand.NewPCG(11, 12))
	odd := []float32{0, float32(math.Copysign(0, -1)), 1e-45, -1e-45, 699.99, 700, 700.01, -699.99, -700, -700.01, -104, 88, 1e30, -1e30,
		math.MaxFloat32, -math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
	for round := range 4000 {
		n := round % 70
		row := make([]float32, n)
		spread := math.Exp(r.Float64()*14 - 6)
		for i := range row {
			row[i] = float32(r.NormFloat64() * spread)
			if round%3 == 0 && r.IntN(8) == 0 {
				row[i] = odd[r.IntN(len(odd))]
			}
		}
		for name, f := range map[string]struct {
			vector func(to, from []float32)
			plain  func(x float32) float32
		}{"silu": {SiLU, siluGo}, "gelu": {GELUTanh, geluTanhGo}} {
			want := make([]float32, n)
			for i, x := range row {
				want[i] = f.plain(x)
			}
			from, ok := guarded(row)
			to, fine := guarded(make([]float32, n))
			f.vector(to, from)
			if at := sameBits(want, to); at >= 0 || !ok() || !fine() || sameBits(row, from) >= 0 {
				t.Fatalf("%s of %v: element %d of %d is %v, want %v (guards %v, %v)", name, row, at, n, to, want, ok(), fine())
			}
		}
		if n == 0 {
			continue
		}
		most := row[0]
		for _, v := range row {
			if v > most {
				most = v
			}
		}
		in, ok := guarded(row)
		if got := Maximum(in); got != most && (got == got || most == most) || !ok() {
			t.Fatalf("the maximum of %v is %v, want %v", row, got, most)
		}
		scale := float32(r.Float64())
		want := slices.Clone(row)
		expScaledGo(want, scale, most)
		ExpScaled(in, scale, most)
		if at := sameBits(want, in); at >= 0 || !ok() {
			t.Fatalf("exp of %v: element %d is %v, want %v", row, at, in, want)
		}
	}
}

// TestSumsAreChains: each row's sum is one chain, whichever rows are beside it.
func TestSumsAreChains(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for n := range 40 {
		rows, want := make([][]float32, n), make([]float32, n)
		for i := range rows {
			rows[i] = make([]float32, 1+r.IntN(60))
			sum := 0.0
			for j := range rows[i] {
				rows[i][j] = r.Float32()
				sum += float64(rows[i][j])
			}
			want[i] = float32(1 / sum)
		}
		got := make([]float32, n)
		InverseSums(got, rows)
		if !slices.Equal(want, got) {
			t.Errorf("%d rows: %v, want %v", n, got, want)
		}
	}
}

func BenchmarkExponents(b *testing.B) {
	for _, n := range []int{64, 512} {
		row := make([]float32, n)
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			b.SetBytes(int64(4 * n))
			for b.Loop() {
				ExpScaled(row, 1, Maximum(row))
				clear(row)
			}
		})
		b.Run(fmt.Sprintf("silu/n=%d", n), func(b *testing.B) {
			b.SetBytes(int64(4 * n))
			for b.Loop() {
				SiLU(row, row)
			}
		})
	}
}
