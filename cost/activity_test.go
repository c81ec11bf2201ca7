package cost

import (
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/weights"
)

var dtypes = []weights.DType{weights.BF16, weights.F16, weights.F32, weights.F8E4M3, weights.F8E5M2, weights.I8}

func format(d weights.DType) weights.Format {
	f, ok := d.Format()
	if !ok {
		panic(d)
	}
	return f
}

func tensor(d weights.DType, rows, cols int, data []byte) weights.Tensor {
	return weights.Tensor{
		Info: weights.Info{Name: "w", DType: d, Shape: []int{rows, cols}, End: int64(len(data))},
		Data: data, File: "m.safetensors",
	}
}

// define computes Activity by its documentation.
func define(f weights.Format, rows, cols int, data []byte) Activity {
	if rows*cols == 0 {
		return Activity{DType: f.DType} // as weights.Info.Matrix has it
	}
	a := Activity{DType: f.DType, Rows: rows, Cols: cols, Elements: uint64(rows * cols)}
	elem := func(n, k int) uint32 { return f.Elem(data, n*cols+k) }
	zero := func(n, k int) bool { return f.Value(elem(n, k)) == 0 }
	count := func(to *Fields, b uint32) {
		to.Sign += uint64(b >> (f.Bits - 1))
		to.Exponent += uint64(bits.OnesCount32(b & f.ExpMask()))
		to.Mantissa += uint64(bits.OnesCount32(b & f.MantMask()))
	}
	inRun := false
	last := uint32(0)
	for n := range rows {
		for k := range cols {
			b, v := elem(n, k), f.Value(elem(n, k))
			count(&a.Ones, b)
			if n > 0 {
				count(&a.RowToggles, b^elem(n-1, k))
				if zero(n, k) != zero(n-1, k) {
					a.ZeroBorders++
				}
			}
			if n+k > 0 {
				count(&a.MemoryToggles, b^last)
			}
			last = b
			if v == 0 {
				a.Zeros++
				if !inRun {
					a.ZeroRuns++
				}
			}
			inRun = v == 0
			if v != v {
				a.NaN++
			} else if v-v != 0 {
				a.Inf++
			}
			if f.Subnormal(b) {
				a.Subnormal++
			}
		}
	}
	return a
}

// elements draws elements with many rare cases: runs of zeros of both signs, numbers at the limits of every class,
// and groups without special values.
func elements(t *rapid.T, f weights.Format, n int) []byte {
	seed := rapid.Uint64().Draw(t, "seed")
	rare := rapid.SampledFrom([]int{0, 1, 30, 300}).Draw(t, "specials per thousand")
	run := rapid.IntRange(1, 40).Draw(t, "longest run")
	r := rand.New(rand.NewPCG(seed, 0))
	classes := []uint32{0, 0, f.SignMask(), 1, f.MantMask(), f.MantMask() + 1, f.MaxFinite,
		f.MaxFinite + 1, f.MaxFinite + 2, f.ExpMask(), f.SignMask() - 1, f.SignMask() | f.ExpMask()}
	data := make([]byte, n*f.Bits/8)
	for i := 0; i < n; {
		b := f.FromValue(float32(0.02 * r.NormFloat64()))
		length := 1
		if r.IntN(1000) < rare {
			b, length = classes[r.IntN(len(classes))]&(f.SignMask()<<1-1), 1+r.IntN(run)
		}
		for ; length > 0 && i < n; length-- {
			f.SetElem(data, i, b)
			i++
		}
	}
	return data
}

func TestMeasureIsTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := format(rapid.SampledFrom(dtypes).Draw(t, "dtype"))
		rows, cols := rapid.SampledFrom([]int{0, 1, 2, 7, 40}).Draw(t, "rows"), rapid.IntRange(0, 300).Draw(t, "cols")
		data := banded(elements(t, f, rows*cols), rapid.IntRange(0, 7).Draw(t, "offset"), 0)
		want := define(f, rows, cols, data)
		got, err := Measure(context.Background(), tensor(f.DType, rows, cols, data), 1)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("definition (-), Measure (+):\n%s", d)
		}
	})
}

// TestMeasureWorkers: tensors of several pieces, whose borders may lie anywhere in a row.
func TestMeasureWorkers(t *testing.T) {
	for _, shape := range [][2]int{{1, pieceBytes*5/4 + 3}, {pieceBytes + 5, 1}, {811, 1999}} {
		for _, d := range []weights.DType{weights.BF16, weights.I8} {
			f, rows, cols := format(d), shape[0], shape[1]
			data := make([]byte, rows*cols*f.Bits/8)
			fillNormal(f, data, 1)
			clear(data[len(data)/3 : len(data)/2])
			want := define(f, rows, cols, data)
			for _, workers := range []int{-1, 1, 2, 7} {
				t.Run(fmt.Sprintf("%s %dx%d workers %d", d, rows, cols, workers), func(t *testing.T) {
					got, err := Measure(context.Background(), tensor(d, rows, cols, data), workers)
					if err != nil {
						t.Fatal(err)
					}
					if d := cmp.Diff(want, got); d != "" {
						t.Fatalf("definition (-), Measure (+):\n%s", d)
					}
				})
			}
		}
	}
}

func TestMeasureErrors(t *testing.T) {
	done, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		t    weights.Tensor
		want string
	}{
		{context.Background(), tensor(weights.U8, 1, 2, []byte{1, 2}),
			`m.safetensors: tensor "w": activity of U8 elements cannot be counted; only ` + weights.FormatNames("and") + ` can`},
		{context.Background(), tensor(weights.BF16, 1, 2, []byte{1, 2}),
			`m.safetensors: tensor "w": 2 bytes of data for shape [1 2] of BF16, which needs 4`},
		{done, tensor(weights.BF16, 1, 1, []byte{1, 2}),
			`m.safetensors: tensor "w": counting activity: context canceled`},
	} {
		if _, err := Measure(c.ctx, c.t, 2); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

func TestFields(t *testing.T) {
	if n := (Fields{4, 8, 12}).Total(); n != 24 {
		t.Errorf("%d bits in all fields, want 24", n)
	}
}

// fillNormal fills data with a million normal values of standard deviation sigma, repeated.
func fillNormal(f weights.Format, data []byte, sigma float64) {
	r := rand.New(rand.NewPCG(1, 2))
	n := min(len(data), 1<<20*f.Bits/8)
	for i := range n * 8 / f.Bits {
		f.SetElem(data, i, f.FromValue(float32(sigma*r.NormFloat64())))
	}
	for n < len(data) {
		n += copy(data[n:], data[:n])
	}
}
