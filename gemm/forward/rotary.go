package forward

import (
	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/elementary"
)

// turns holds the cosines and sines of all positions from 0.
type turns struct{ cos, sin sgemm.Matrix }

func newTurns(f decoder.Frequencies, positions int) turns {
	t := turns{sgemm.Dense(positions, len(f.Radians), nil), sgemm.Dense(positions, len(f.Radians), nil)}
	for p := range positions {
		cos, sin := t.cos.Row(p), t.sin.Row(p)
		for i, f := range f.Radians {
			s, c := elementary.Sincos(float64(float32(p) * f))
			cos[i], sin[i] = float32(c), float32(s)
		}
		if f.Length != 1 {
			for i := range cos {
				cos[i] *= f.Length
				sin[i] *= f.Length
			}
		}
	}
	return t
}

// halves rotates the channel pairs i and i + n/2.
func halves(x, cos, sin []float32) {
	a, b := x[:len(cos)], x[len(cos):2*len(cos)]
	sin = sin[:len(cos)]
	for i, c := range cos {
		s, u, v := sin[i], a[i], b[i]
		a[i] = float32(u*c) - float32(v*s)
		b[i] = float32(v*c) + float32(u*s)
	}
}

// neighbours rotates the channel pairs 2i and 2i + 1.
func neighbours(x, cos, sin []float32) {
	for i, c := range cos {
		s, u, v := sin[i], x[2*i], x[2*i+1]
		x[2*i] = float32(u*c) - float32(v*s)
		x[2*i+1] = float32(v*c) + float32(u*s)
	}
}

// turn rotates the queries and keys in each row of y.
func turn(p *pass, r *decoder.Rotary, y sgemm.Matrix, h decoder.Heads) error {
	longest := 0
	for _, tokens := range p.sequences {
		longest = max(longest, len(tokens))
	}
	short := newTurns(r.Frequencies, longest)
	long := short
	if r.Long != nil && longest > r.LongFrom {
		long = newTurns(*r.Long, longest)
	}
	type place struct {
		*turns
		position int
	}
	var places []place // by row
	for _, tokens := range p.sequences {
		t := &short
		if len(tokens) > r.LongFrom {
			t = &long
		}
		for position := range tokens {
			places = append(places, place{t, position})
		}
	}
	turn := halves
	if r.Neighbours {
		turn = neighbours
	}
	queries, keys := h.Columns()
	columns, n := append(queries, keys...), 2*len(r.Radians)
	return p.rows(y.Rows, func(i int) {
		row, at := y.Row(i), places[i]
		cos, sin := at.cos.Row(at.position), at.sin.Row(at.position)
		for _, c := range columns {
			turn(row[c+r.First:c+r.First+n], cos, sin)
		}
	})
}
