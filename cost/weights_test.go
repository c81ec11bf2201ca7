package cost

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/weights"
)

// TestSampleRows: a sample's ranges are separate and in order, begin and end at blocks, have enough rows, lie in
// every quarter of a long matrix, and stay small for large matrices.
func TestSampleRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 300_000).Draw(t, "rows")
		cols := rapid.IntRange(1, 300_000).Draw(t, "cols")
		unit := 1 << rapid.IntRange(0, 6).Draw(t, "log2 unit")
		ranges := SampleRows(rows, cols, unit)
		if len(ranges) == 1 && ranges[0] == [2]int{0, rows} {
			if rows > sampleBands*64 && rows*cols > 2*mostSample {
				t.Fatalf("all of %d×%d is the sample", rows, cols)
			}
			return
		}
		end, sum := 0, 0
		for i, r := range ranges {
			height := r[1] - r[0]
			switch {
			case r[0] < end || r[1] > rows:
				t.Fatalf("%v: range %d overlaps or ends outside of %d rows", ranges, i, rows)
			case r[0]%unit != 0 || r[0]%16 != 0 || height%unit != 0 || height%16 != 0:
				t.Fatalf("%v cut blocks of %d rows", ranges, unit)
			case height < 48:
				t.Fatalf("%v are lower than 48 rows", ranges)
			}
			if part := rows / len(ranges); r[1] <= i*part || r[0] >= (i+1)*part+len(ranges) {
				t.Fatalf("%v: range %d is not in its part of %d rows", ranges, i, rows)
			}
			end, sum = r[1], sum+height*cols
		}
		if sum > mostSample && len(ranges) > 1 || sum < leastSample/2 {
			t.Fatalf("%v of %d columns are %d elements", ranges, cols, sum)
		}
	})
}

// TestSampleOfCopiesNothing: bands are slices of the tensor itself.
func TestSampleOfCopiesNothing(t *testing.T) {
	for _, d := range dtypes {
		const rows, cols = 1000, 70
		size := cols * d.Bits() / 8
		x := tensor(d, rows, cols, make([]byte, rows*size))
		w := SampleOf(x, 1)
		if w.DType != d || w.OutAxis != 1 || w.Rows != rows || w.Cols != cols || len(w.Bands) != sampleBands {
			t.Fatalf("%s: %v, outputs %d, %d×%d, %d bands", d, w.DType, w.OutAxis, w.Rows, w.Cols, len(w.Bands))
		}
		for _, b := range w.Bands {
			if &b.Data[0] != &x.Data[b.First*size] || len(b.Data)%size != 0 {
				t.Errorf("%s: the band at row %d is a copy, or not whole rows", d, b.First)
			}
		}
	}
	empty := weights.Tensor{Info: weights.Info{DType: weights.BF16, Shape: []int{0, 5}}}
	if w := SampleOf(empty, 0); w.Rows != 0 || len(w.Bands) != 1 || len(w.Bands[0].Data) != 0 {
		t.Errorf("an empty tensor's sample is %+v", w)
	}
}

// TestScale: weights scaled by a power of two to exponents with fewer toggles use less energy. Only a common Scale
// shows this; relative to their own scale, the energy does not change.
func TestScale(t *testing.T) {
	c, err := FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	energy := func(w Weights) float64 {
		e, err := c.Energy(t.Context(), w, Stationary, Workload{Decode: 1})
		if err != nil {
			t.Fatal(err)
		}
		return e.Relative
	}
	source := drawnWeights(t, "normal(0,0.02)")
	rms, err := source.RMS(t.Context())
	if err != nil || math.Abs(rms-0.02) > 0.001 {
		t.Fatalf("the root mean square is %g (%v)", rms, err)
	}
	before, lifted := energy(source), drawnWeights(t, "normal(0,0.02) | scale(2^5)")
	if own := energy(lifted); math.Abs(own-before) > 0.004 {
		t.Errorf("random weights have the relative energies %v and %v", before, own)
	}
	source.Scale, lifted.Scale = rms, rms
	if energy(source) != before {
		t.Error("its own scale makes a difference")
	}
	if after := energy(lifted); !(after < before-0.005) {
		t.Errorf("%v before, %v after", before, after)
	}
}

func drawnWeights(t *testing.T, text string) Weights {
	t.Helper()
	const rows, cols = 2048, 1024
	data, _ := drawn(t, text, weights.BF16, rows, cols, 1)
	return Weights{DType: weights.BF16, Rows: rows, Cols: cols, Bands: []Band{{Data: data}}}
}
