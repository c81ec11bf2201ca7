package bench

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// quantised is a quantised layer of 14336 outputs and 4096 inputs, quantised from the same normal values in all patterns.
type quantised struct {
	name string
	w    gemm.Matrix
	snr  float64 // SNR of the values in dB; infinite or negative: not shown
}

// The layer repeats some rows, which is quicker to make.
const (
	quantisedRows, quantisedCols = 14336, 4096
	distinctRows                 = 512
	quantisedSigma               = 0.02
)

// quantisedRow draws a row of the layer's values.
func quantisedRow(to []float32, row int) {
	rng := rand.New(rand.NewPCG(17, uint64(row)))
	for k := range to {
		to[k] = float32(quantisedSigma * rng.NormFloat64())
	}
}

// noise holds the sum of squared errors and the sum of squared values.
type noise struct{ error, value float64 }

func (n noise) snr() float64 { return 10 * math.Log10(n.value/n.error) }

// eachRow quantises the layer row by row.
func eachRow(t *testing.T, rows int, quantise func(row int, v []float32) noise) float64 {
	t.Helper()
	found := make([]noise, min(rows, distinctRows))
	err := parallel.Run(context.Background(), len(found), 0, func(_ context.Context, r int) error {
		v := make([]float32, quantisedCols)
		quantisedRow(v, r)
		found[r] = quantise(r, v)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var sum noise
	for _, n := range found {
		sum.error, sum.value = sum.error+n.error, sum.value+n.value
	}
	return sum.snr()
}

// rounded keeps the leading bit and the given number of bits after it. With 7 bits it keeps all of BF16.
func rounded(v float32, bits int) float32 {
	step := uint32(1) << (23 - bits)
	b := math.Float32bits(v)
	return math.Float32frombits((b + step/2) &^ (step - 1))
}

// steps returns the scales with a number of mantissa bits that are near the scale for a group's largest value.
func steps(largest float32, bits int) (list []float32) {
	for f := float32(0.5); f < 1.3; f *= 1.03 {
		if s := rounded(largest/7*f, bits); !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// int4 quantises to symmetric codes in groups of 128 with the scales of least squared error among those of so many mantissa
// bits. keep chooses the codes that may be used.
func int4(t *testing.T, name string, rows, bits int, keep func(code int) bool) quantised {
	t.Helper()
	const group = 128
	c := &gemm.Codes{Rows: rows, Cols: quantisedCols, Codes: make([]byte, rows*quantisedCols), Group: group, ScaleType: weights.BF16,
		Scales: make([]byte, 2*rows*quantisedCols/group)}
	var codes []float32
	for q := range 16 {
		if keep == nil || keep(q) {
			codes = append(codes, float32(q-8))
		}
	}
	nearest := func(v float32) float32 { // every code of an even grid is as far from its neighbours as the next
		best := codes[0]
		for _, q := range codes[1:] {
			if math.Abs(float64(v-q)) < math.Abs(float64(v-best)) {
				best = q
			}
		}
		return best
	}
	if keep == nil {
		nearest = func(v float32) float32 {
			return float32(min(max(math.RoundToEven(float64(v)), -8), 7))
		}
	}
	snr := eachRow(t, rows, func(row int, v []float32) (n noise) {
		for g := 0; g < len(v)/group; g++ {
			of := v[g*group : (g+1)*group]
			var largest float32
			for _, e := range of {
				largest = max(largest, e, -e)
			}
			best, least := float32(0), math.Inf(1)
			for _, s := range steps(largest, bits) {
				sum := 0.0
				for _, e := range of {
					d := float64(e - nearest(e/s)*s)
					sum += d * d
				}
				if sum < least {
					best, least = s, sum
				}
			}
			binary.LittleEndian.PutUint16(c.Scales[2*(row*quantisedCols/group+g):], uint16(math.Float32bits(best)>>16))
			for k, e := range of {
				q := nearest(e / best)
				c.Codes[row*quantisedCols+g*group+k] = byte(q + 8)
				n.error += float64(e-q*best) * float64(e-q*best)
				n.value += float64(e) * float64(e)
			}
		}
		return n
	})
	repeat(c.Codes, quantisedCols)
	repeat(c.Scales, 2*quantisedCols/group)
	return coded(t, name, c, snr)
}

// repeat copies the first rows of a matrix into the other rows.
func repeat(data []byte, row int) {
	for at := distinctRows * row; at < len(data); at += copy(data[at:], data[:distinctRows*row]) {
	}
}

func coded(t *testing.T, name string, c *gemm.Codes, snr float64) quantised {
	t.Helper()
	w, err := c.Matrix()
	if err != nil {
		t.Fatal(err)
	}
	return quantised{name, w, snr}
}

// int4Patterns are INT4 layers; the first is the baseline.
func int4Patterns(t *testing.T, rows int) []quantised {
	return []quantised{
		int4(t, "least error", rows, 7, nil),
		int4(t, "two mantissa bits", rows, 2, nil),
		int4(t, "one mantissa bit", rows, 1, nil),
		int4(t, "powers of two", rows, 0, nil),
		int4(t, "even codes", rows, 7, func(q int) bool { return q%2 == 0 }),
		int4(t, "even codes, powers of two", rows, 0, func(q int) bool { return q%2 == 0 }),
		int4(t, "all codes zero", rows, 7, func(q int) bool { return q == 8 }),
	}
}

// fp8 quantises to FP8. scale gives a block's scale, of the largest value in it; grid rounds to a multiple of that share
// of the scale before.
func fp8(t *testing.T, name string, rows, blockRows, blockCols int, scale func(largest float64) float64, grid float64, keep int) quantised {
	t.Helper()
	f, _ := weights.F8E4M3.Format()
	m := gemm.NewMatrix(weights.F8E4M3, rows, quantisedCols)
	s := &gemm.Scales{Rows: blockRows, Cols: blockCols}
	across := (quantisedCols-1)/blockCols + 1
	bands := (rows-1)/blockRows + 1
	largest := make([]float64, bands*across)
	err := parallel.Run(context.Background(), min(bands, max(1, distinctRows/blockRows)), 0, func(_ context.Context, band int) error {
		v := make([]float32, quantisedCols)
		for r := band * blockRows; r < min(rows, distinctRows, (band+1)*blockRows); r++ {
			quantisedRow(v, r)
			for k, e := range v {
				at := &largest[band*across+k/blockCols]
				*at = max(*at, math.Abs(float64(e)))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range largest {
		s.Values = append(s.Values, float32(scale(largest[i%(max(1, distinctRows/blockRows)*across)])))
	}
	m.Scales = s
	snr := eachRow(t, rows, func(row int, v []float32) (n noise) {
		for k, e := range v {
			by := float64(s.Values[row/blockRows*across+k/blockCols])
			u := float64(e) / by
			if grid > 0 {
				u = math.RoundToEven(u/grid) * grid
			}
			x := float32(u)
			if keep >= 0 && x != 0 {
				x = rounded(x, keep)
			}
			b := f.FromValue(x)
			m.Data[row*quantisedCols+k] = byte(b)
			d := float64(e) - float64(f.Value(b))*by
			n.error, n.value = n.error+d*d, n.value+float64(e)*float64(e)
		}
		return n
	})
	repeat(m.Data, quantisedCols)
	return quantised{name, m, snr}
}

// fp8Patterns are FP8 layers with a scale for each block; the first is the baseline.
func fp8Patterns(t *testing.T, rows, blockRows, blockCols int) []quantised {
	at := func(sigma float64) func(float64) float64 { // σ in code space
		return func(float64) float64 { return quantisedSigma / sigma }
	}
	of := func(name string, scale func(float64) float64, grid float64, keep int) quantised {
		return fp8(t, name, rows, blockRows, blockCols, scale, grid, keep)
	}
	return []quantised{
		of("largest value at 448", func(l float64) float64 { return l / 448 }, 0, -1),
		of("standard deviation at 2^-6", at(math.Ldexp(1, -6)), 0, -1),
		of("standard deviation at 2^-7", at(math.Ldexp(1, -7)), 0, -1),
		of("multiples of half the standard deviation, at 2^-8", at(math.Ldexp(1, -8)), math.Ldexp(1, -9), -1),
		of("multiples of a quarter of the standard deviation", at(1), 0.25, -1),
		of("multiples of half the standard deviation", at(1), 0.5, -1),
		of("one mantissa bit", func(l float64) float64 { return l / 448 }, 0, 1),
		of("all codes zero", at(1), 1e9, -1),
	}
}
