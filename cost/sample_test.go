package cost

import (
	"context"
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/weights"
)

// drawn returns an operand of a pattern, with all its bytes.
func drawn(t testing.TB, text string, d weights.DType, rows, k int, seed uint64) ([]byte, Operand) {
	t.Helper()
	data, err := pattern.MustParse(text).Generate(t.Context(), pattern.Spec{DType: d, Rows: rows, Cols: k, Seed: seed}, 2)
	if err != nil {
		t.Fatal(err)
	}
	size := d.Bits() / 8
	return data, func(_ context.Context, row, rows, col, cols int) ([]byte, error) {
		var out []byte
		for r := row; r < row+rows; r++ {
			out = append(out, data[(r*k+col)*size:(r*k+col+cols)*size]...)
		}
		return out, nil
	}
}

func observed(t *testing.T, role Role, w, x string) *Features {
	t.Helper()
	const rows, k = 256, 512
	_, ow := drawn(t, w, weights.BF16, rows, k, 1)
	_, ox := drawn(t, x, weights.BF16, rows, k, 2)
	c := &Calibration{Facts: factsOfH200(t)}
	s, err := c.Observe(t.Context(), weights.BF16, Product{Type: arith.BF16, M: rows, N: rows, K: k, Role: role}, false, ox, ow)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFeatures: operands with known features.
func TestFeatures(t *testing.T) {
	facts := factsOfH200(t)
	features := facts.featureNames()
	random := observed(t, Streaming, "normal(0,1)", "normal(0,1)")
	zeros := observed(t, Streaming, "zeros", "normal(0,1)")
	for _, i := range []int{quadSum, groupSum, productMantissa, productSign, productAligned, streamingMantissa, streamingNonzero, weightElement, weightOnes, weightAny, weightNonzero} {
		if zeros[i] != 0 || !(random[i] > 0) {
			t.Errorf("%s: %v of zeros, %v of random weights", features[i], zeros[i], random[i])
		}
	}
	equal := observed(t, Streaming, "normal(0,1) | repeat(rows=256)", "normal(0,1)")
	for _, i := range []int{quadSum, groupSum, productMantissa, streamingMantissa, streamingExponent, streamingToggles} {
		if equal[i] != 0 {
			t.Errorf("%s: %v although all rows are equal", features[i], equal[i])
		}
	}
	if d := math.Abs(random[streamingMantissa] - 3.5); d > 0.1 {
		t.Errorf("%v of 7 random mantissa bits toggle", random[streamingMantissa])
	}
	if d := math.Abs(random[productSign] - 0.5); d > 0.05 {
		t.Errorf("%v of random products change their sign", random[productSign])
	}
	abs := observed(t, Streaming, "normal(0,1) | abs", "normal(0,1) | abs")
	if abs[productSign] != 0 {
		t.Errorf("%v of positive products change their sign", abs[productSign])
	}
	// The two roles are the same product with exchanged operands.
	one, other := observed(t, Streaming, "normal(0,1) | sparse(0.5)", "normal(0,1)"), observed(t, Stationary, "normal(0,1) | sparse(0.5)", "normal(0,1)")
	if !(one[streamingNonzero] == 1 && one[stationaryBorders] == 0 && other[stationaryBorders] > 0.4) {
		t.Errorf("sparse weights: borders %v streaming, %v stationary", one[stationaryBorders], other[stationaryBorders])
	}
}

// TestBandsAreTheMatrix: a matrix in bands, in either storage, has about the features of the whole matrix.
func TestBandsAreTheMatrix(t *testing.T) {
	const rows, k = 512, 768
	data, whole := drawn(t, "normal(0,1) | round(3) | sparse(0.3, block=4x4)", weights.BF16, rows, k, 1)
	turned := make([]byte, len(data))
	for r := range rows {
		for c := range k {
			copy(turned[2*(c*rows+r):][:2], data[2*(r*k+c):])
		}
	}
	f, _ := weights.BF16.Format()
	facts := factsOfH200(t)
	features := facts.featureNames()
	_, x := drawn(t, "normal(0,1)", weights.BF16, rows, k, 2)
	full, err := facts.take(t.Context(), Stationary, false, sampleTiles, operandMatrix(f, rows, k, whole), operandMatrix(f, rows, k, x))
	if err != nil {
		t.Fatal(err)
	}
	for name, tensor := range map[string]weights.Tensor{
		"rows":    {Info: weights.Info{DType: weights.BF16, Shape: []int{rows, k}}, Data: data},
		"columns": {Info: weights.Info{DType: weights.BF16, Shape: []int{k, rows}}, Data: turned},
	} {
		axis := 0
		if name == "columns" {
			axis = 1
		}
		m, err := SampleOf(tensor, axis).matrix()
		if err != nil {
			t.Fatal(err)
		}
		part, err := facts.take(t.Context(), Stationary, false, sampleTiles, m, operandMatrix(f, rows, k, x))
		if err != nil {
			t.Fatal(err)
		}
		a, b := full.mean(), part.mean()
		for _, i := range chipFeatures {
			if i >= busElement && axis == 1 {
				continue // memory has the other order
			}
			if math.Abs(a[i]-b[i]) > 0.05*a[i]+0.02 {
				t.Errorf("%s: %s is %v, of all %v", name, features[i], b[i], a[i])
			}
		}
	}
}

// TestSmallMatrices: small matrices can be sampled too.
func TestSmallMatrices(t *testing.T) {
	f, _ := weights.BF16.Format()
	facts := factsOfH200(t)
	for _, shape := range [][3]int{{1, 1, 1}, {1, 40, 3}, {7, 3, 33}, {17, 9, 64}} {
		_, x := drawn(t, "normal(0,1)", weights.BF16, shape[0], shape[2], 1)
		_, w := drawn(t, "normal(0,1)", weights.BF16, shape[1], shape[2], 2)
		s, err := facts.take(t.Context(), Stationary, false, sampleTiles, operandMatrix(f, shape[1], shape[2], w), operandMatrix(f, shape[0], shape[2], x))
		if err != nil {
			t.Fatalf("%v: %v", shape, err)
		}
		m := s.mean()
		one := &Model{Coefficients: map[string]float64{constantTerm: 0.5, facts.featureNames()[groupSum]: 0.5}}
		if a := facts.coefficients(one).activity(&m, &m); a != 1 && a != 0.5 {
			t.Errorf("%v: activity %v relative to itself", shape, a)
		}
	}
}

func TestSamplingIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, w := drawn(t, "zeros", weights.BF16, 64, 64, 1)
	c := &Calibration{Facts: factsOfH200(t)}
	if _, err := c.Observe(ctx, weights.BF16, Product{Type: arith.BF16, M: 64, N: 64, K: 64}, false, w, w); err == nil {
		t.Error("a cancelled sample came to an end")
	}
}

// BenchmarkEnergy predicts a large layer after the features of random operands are cached.
func BenchmarkEnergy(b *testing.B) {
	c, err := FindCalibration("h200")
	if err != nil {
		b.Fatal(err)
	}
	data, _ := drawn(b, "normal(0,0.02)", weights.BF16, 14336, 4096, 1)
	t := weights.Tensor{Info: weights.Info{DType: weights.BF16, Shape: []int{14336, 4096}}, Data: data}
	for b.Loop() {
		e, err := c.Energy(context.Background(), SampleOf(t, 0), Stationary, DefaultWorkload)
		if err != nil || e.Relative == 0 {
			b.Fatal(err)
		}
	}
}
