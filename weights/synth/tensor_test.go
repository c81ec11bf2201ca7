package synth

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/internal/stats"
	"github.com/lowtoggle/lowtoggle/weights"
)

// rows and columns of the matrix whose statistics are taken
const testRows, testCols = 4096, 1024

func TestMatrixLooksTrained(t *testing.T) {
	for _, k := range []kind{linear, conv1D, kernel} {
		shape := []int{testRows, testCols}
		if k == kernel {
			shape = []int{testRows, testCols / 16, 4, 4}
		}
		m := generate(weights.Info{Name: "w", DType: weights.F32, Shape: shape}, k)
		outputs, inputs := rms(m)
		if k == conv1D {
			inputs, outputs = outputs, inputs
		}
		if s := logStd(outputs); math.Abs(s-0.3) > 0.03 {
			t.Errorf("kind %d: output channels spread by %.3f, want 0.3", k, s)
		}
		usual, outliers := splitOutliers(inputs)
		if want := (len(inputs) + 255) / 256; len(outliers) != want {
			t.Errorf("kind %d: %d outliers of %d inputs, want %d", k, len(outliers), len(inputs), want)
		}
		if s := logStd(usual); math.Abs(s-0.15) > 0.02 {
			t.Errorf("kind %d: other inputs spread by %.3f, want 0.15", k, s)
		}
		for _, o := range outliers {
			if f := o / stats.Median(usual); f < 2.5 || f > 19 { // 4 to 12, times the usual spread
				t.Errorf("kind %d: an outlier stands out %.1f times", k, f)
			}
		}
		// Log-normal factors have a root mean square above their median, by e^(spread²).
		want := math.Exp(0.09) / math.Sqrt(float64(len(inputs)))
		if got := stats.Median(usual); math.Abs(got/want-1) > 0.05 {
			t.Errorf("kind %d: standard deviation of a usual input is %.4f, want about %.4f", k, got, want)
		}
	}
}

func TestElementsAreNormalAndRowsUnrelated(t *testing.T) {
	info := weights.Info{Name: "w", DType: weights.F32, Shape: []int{testRows, testCols}}
	x := newTensor(info, linear, 1)
	a, b := make([]float32, testCols), make([]float32, testCols)
	var m1, m2, m4, ab float64
	for r := range testRows - 1 {
		quantiles().draw(a, newStream(x.key, r))
		quantiles().draw(b, newStream(x.key, r+1))
		for i := range a {
			z := float64(a[i])
			m1 += z
			m2 += z * z
			m4 += z * z * z * z
			ab += z * float64(b[i])
		}
	}
	n := float64((testRows - 1) * testCols)
	for _, c := range []struct {
		name            string
		got, want, near float64 // near: about five standard errors
	}{
		{"mean", m1 / n, 0, 0.0025},
		{"variance", m2 / n, 1, 0.0035},
		{"fourth moment", m4 / n, 3, 0.025},
		{"correlation of neighbouring rows", ab / n, 0, 0.0025},
	} {
		if math.Abs(c.got-c.want) > c.near {
			t.Errorf("%s is %.4f, want %.4f ± %.4f", c.name, c.got, c.want, c.near)
		}
	}
}

func TestNormsAndBiases(t *testing.T) {
	info := weights.Info{Name: "v", DType: weights.F32, Shape: []int{4096}}
	scale := generate(info, norm)[0]
	if lo, hi := slices.Min(scale), slices.Max(scale); lo < 0.5 || hi > 1.5 || hi-lo < 0.5 {
		t.Errorf("norm weights from %.2f to %.2f, want them spread within 0.5 and 1.5", lo, hi)
	}
	if m := mean(scale); math.Abs(m-1) > 0.02 {
		t.Errorf("norm weights are %.3f on average, want 1", m)
	}
	for i, v := range generate(info, norm1p)[0] {
		if math.Abs(v+1-scale[i]) > 1e-6 {
			t.Fatalf("value %d of a norm that adds 1 is %g, of one that does not %g", i, v, scale[i])
		}
	}
	shift := generate(info, bias)[0]
	if m, hi := mean(shift), slices.Max(shift); math.Abs(m) > 0.003 || hi < 0.03 || hi > 0.1 {
		t.Errorf("biases are %.4f on average and up to %.3f, want small ones around 0", m, hi)
	}
}

func TestStreamsDependOnEveryPartOfTheKey(t *testing.T) {
	info := weights.Info{Name: "w", DType: weights.BF16, Shape: []int{8, 64}}
	other := info
	other.Name = "v"
	seen := map[string]string{}
	for _, x := range []struct {
		name string
		t    *tensor
	}{{"seed 1", newTensor(info, linear, 1)}, {"seed 2", newTensor(info, linear, 2)}, {"another name", newTensor(other, linear, 1)}} {
		for r := range 8 {
			row := string(fill(x.t, r, 1))
			if twin, ok := seen[row]; ok {
				t.Errorf("%s row %d has the bytes of %s", x.name, r, twin)
			}
			seen[row] = x.name
		}
	}
}

// A row does not depend on the rows that are generated with it.
func TestRowsDoNotDependOnBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		info := weights.Info{
			Name:  "w",
			DType: rapid.SampledFrom([]weights.DType{weights.BF16, weights.F16, weights.F32, weights.I8}).Draw(t, "dtype"),
			Shape: []int{rapid.IntRange(1, 20).Draw(t, "rows"), rapid.IntRange(0, 9).Draw(t, "cols")},
		}
		x := newTensor(info, rapid.SampledFrom([]kind{linear, conv1D, embedding}).Draw(t, "kind"), rapid.Uint64().Draw(t, "seed"))
		var parts []byte
		for r := 0; r < x.rows; {
			n := rapid.IntRange(1, x.rows-r).Draw(t, "n")
			parts = append(parts, fill(x, r, n)...)
			r += n
		}
		if !bytes.Equal(parts, fill(x, 0, x.rows)) {
			t.Fatal("blocks differ from the whole")
		}
	})
}

func fill(x *tensor, first, n int) []byte {
	data := make([]byte, n*x.rowBytes())
	x.fill(data, first, n, make([]float32, x.cols))
	return data
}

// generate returns a whole tensor's values by row.
func generate(info weights.Info, k kind) [][]float64 {
	x := newTensor(info, k, 1)
	m := make([][]float64, x.rows)
	values := make([]float32, x.cols)
	for r := range m {
		x.draw(values, r)
		m[r] = make([]float64, x.cols)
		for c, v := range values {
			m[r][c] = float64(v)
		}
	}
	return m
}

// rms returns the root mean square of each row and of each column.
func rms(m [][]float64) (rows, cols []float64) {
	rows, cols = make([]float64, len(m)), make([]float64, len(m[0]))
	for r := range m {
		for c, v := range m[r] {
			rows[r] += v * v / float64(len(cols))
			cols[c] += v * v / float64(len(rows))
		}
	}
	for _, s := range [][]float64{rows, cols} {
		for i := range s {
			s[i] = math.Sqrt(s[i])
		}
	}
	return rows, cols
}

// splitOutliers parts channels at 2.2 times the median, which the usual spread does not reach.
func splitOutliers(channels []float64) (usual, outliers []float64) {
	border := 2.2 * stats.Median(channels)
	for _, c := range channels {
		if c > border {
			outliers = append(outliers, c)
		} else {
			usual = append(usual, c)
		}
	}
	return usual, outliers
}

func logStd(x []float64) float64 {
	var m1, m2 float64
	for _, v := range x {
		m1 += math.Log(v) / float64(len(x))
		m2 += math.Log(v) * math.Log(v) / float64(len(x))
	}
	return math.Sqrt(m2 - m1*m1)
}

func mean(x []float64) (m float64) {
	for _, v := range x {
		m += v / float64(len(x))
	}
	return m
}
