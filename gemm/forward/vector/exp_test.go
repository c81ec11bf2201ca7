package vector

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestExpIsMathExp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 200_000 {
		x := (r.Float64()*2 - 1) * 699
		if i%2 == 0 {
			x /= 100
		}
		got, want := Exp(x), math.Exp(x)
		if math.Abs(got-want) > 1e-13*want {
			t.Fatalf("Exp(%v) is %v, want %v", x, got, want)
		}
	}
	for x, want := range map[float64]float64{0: 1, math.Copysign(0, -1): 1, 1e-300: 1, 700: math.Inf(1), 1e300: math.Inf(1),
		math.Inf(1): math.Inf(1), -700: 0, -1e300: 0, math.Inf(-1): 0} {
		if got := Exp(x); got != want {
			t.Errorf("Exp(%v) is %v, want %v", x, got, want)
		}
	}
	if got := Exp(math.NaN()); got == got {
		t.Errorf("Exp(NaN) is %v", got)
	}
}

// ulps returns the distance of two floats in units of the last place of the second.
func ulps(got float32, want float64) float64 {
	w := math.Abs(want)
	_, e := math.Frexp(w)
	return math.Abs(float64(got)-want) / math.Ldexp(1, max(e-24, -149))
}

func TestExpScaled(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		row := make([]float32, 1+r.IntN(50))
		spread, scale, largest := r.Float64()*400, float32(r.Float64()), float32(r.Float64()*20)
		for i := range row {
			row[i] = largest - float32(r.Float64()*spread)
		}
		want, total := make([]float64, len(row)), 0.0
		for i, v := range row {
			want[i] = math.Exp(float64((v - largest) * scale))
			total += want[i]
		}
		ExpScaled(row, scale, largest)
		for i, v := range row {
			if off := ulps(v, want[i]); !(off <= 0.51) {
				t.Fatalf("e^x is %v, want %v: off by %.3f ulp", v, want[i], off)
			}
		}
		sum := 0.0
		for _, v := range row {
			sum += float64(v)
		}
		if math.Abs(sum-total) > 1e-7*total+1e-40 {
			t.Fatalf("the sum is %v, want %v", sum, total)
		}
	}
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
		row := []float32{1, bad, 2}
		if inverse := softmax(row); inverse == inverse {
			t.Errorf("softmax with a score of %v gives %v and no NaN", bad, inverse)
		}
	}
	row := []float32{float32(math.Inf(-1)), 3}
	if inverse := softmax(row); inverse != 1 || row[0] != 0 || row[1] != 1 {
		t.Errorf("softmax of a score of -Inf and another: %v, inverse %v", row, inverse)
	}
}

// softmax replaces scores by weights, and returns the inverse of their sum.
func softmax(row []float32) float32 {
	ExpScaled(row, 1, Maximum(row))
	return inverseOf(row)
}

func inverseOf(row []float32) float32 {
	var inverse [1]float32
	InverseSums(inverse[:], [][]float32{row})
	return inverse[0]
}
