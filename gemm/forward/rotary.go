package forward

import (
	"context"
	"math"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// rotary turns pairs of a head's channels by position·frequency: channels i and i + n/2 of the n that
// turn, or neighbours.
type rotary struct {
	frequencies
	// long are for sequences longer than longFrom; nil: none differ.
	long       *frequencies
	longFrom   int
	first      int // channel of a head that turns
	neighbours bool
}

// frequencies are by pair.
type frequencies struct {
	radians []float32 // per position
	length  float32   // what turned channels are multiplied by
}

func newFrequencies(radians []float64, length float64) frequencies {
	f := frequencies{length: float32(length)}
	for _, v := range radians {
		f.radians = append(f.radians, float32(v))
	}
	return f
}

// turns has cosines and sines for positions from 0.
type turns struct{ cos, sin sgemm.Matrix }

func (f frequencies) turns(positions int) turns {
	t := turns{sgemm.Dense(positions, len(f.radians), nil), sgemm.Dense(positions, len(f.radians), nil)}
	for p := range positions {
		cos, sin := t.cos.Row(p), t.sin.Row(p)
		for i, f := range f.radians {
			s, c := math.Sincos(float64(float32(p) * f))
			cos[i], sin[i] = float32(c), float32(s)
		}
		if f.length != 1 {
			for i := range cos {
				cos[i] *= f.length
				sin[i] *= f.length
			}
		}
	}
	return t
}

// halves turns channels i and i + n/2.
func halves(x, cos, sin []float32) {
	a, b := x[:len(cos)], x[len(cos):2*len(cos)]
	sin = sin[:len(cos)]
	for i, c := range cos {
		s, u, v := sin[i], a[i], b[i]
		a[i] = float32(u*c) - float32(v*s)
		b[i] = float32(v*c) + float32(u*s)
	}
}

// neighbours turns channels 2i and 2i + 1.
func neighbours(x, cos, sin []float32) {
	for i, c := range cos {
		s, u, v := sin[i], x[2*i], x[2*i+1]
		x[2*i] = float32(u*c) - float32(v*s)
		x[2*i+1] = float32(v*c) + float32(u*s)
	}
}

// apply turns the queries and keys in each row of y.
func (r *rotary) apply(ctx context.Context, d *Decoder, y sgemm.Matrix, h heads, sequences [][]int32) error {
	longest := 0
	for _, tokens := range sequences {
		longest = max(longest, len(tokens))
	}
	short := r.turns(longest)
	long := short
	if r.long != nil && longest > r.longFrom {
		long = r.long.turns(longest)
	}
	type place struct {
		*turns
		position int
	}
	var places []place // by row
	for _, tokens := range sequences {
		t := &short
		if len(tokens) > r.longFrom {
			t = &long
		}
		for p := range tokens {
			places = append(places, place{t, p})
		}
	}
	turn := halves
	if r.neighbours {
		turn = neighbours
	}
	queries, keys := h.columns()
	columns, n := append(queries, keys...), 2*len(r.radians)
	return d.rows(ctx, y.Rows, func(i int) {
		row, at := y.Row(i), places[i]
		cos, sin := at.cos.Row(at.position), at.sin.Row(at.position)
		for _, c := range columns {
			turn(row[c+r.first:c+r.first+n], cos, sin)
		}
	})
}
