package rounder

import (
	"encoding/binary"
	"math"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// narrow reports whether values travel as BF16, the upper half of a float32.
func narrow(f weights.Format) bool { return f.DType == weights.BF16 }

// transfer brings values of a layer to the card and back: values of BF16 in 2 bytes, all others in 4.
type transfer struct {
	w       sgemm.Matrix
	narrow  bool
	workers int
}

func newTransfer(w sgemm.Matrix, f weights.Format, workers int) transfer {
	return transfer{w, narrow(f), workers}
}

func (t transfer) size() int {
	if t.narrow {
		return 2
	}
	return 4
}

// buffer holds n values.
func (t transfer) buffer(n int) []byte { return make([]byte, n*t.size()) }

// rows are the values of some rows.
func (t transfer) rows(first, end int) []byte {
	out := t.buffer((end - first) * t.w.Cols)
	t.encode(out, t.w.Slice(first, end, 0, t.w.Cols))
	return out
}

func (t transfer) encode(out []byte, w sgemm.Matrix) {
	bytes := w.Cols * t.size()
	parallel.Do(w.Rows, t.workers, func(n int) {
		to := out[n*bytes:][:bytes]
		for k, v := range w.Row(n) {
			if t.narrow {
				binary.LittleEndian.PutUint16(to[2*k:], uint16(math.Float32bits(v)>>16))
			} else {
				binary.LittleEndian.PutUint32(to[4*k:], math.Float32bits(v))
			}
		}
	})
}

func (t transfer) decode(to sgemm.Matrix, data []byte) {
	bytes := to.Cols * t.size()
	parallel.Do(to.Rows, t.workers, func(n int) {
		from := data[n*bytes:][:bytes]
		row := to.Row(n)
		for k := range row {
			if t.narrow {
				row[k] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(from[2*k:])) << 16)
			} else {
				row[k] = math.Float32frombits(binary.LittleEndian.Uint32(from[4*k:]))
			}
		}
	})
}

// isNarrow reports whether BF16 holds all values exactly.
func isNarrow(workers int, all ...sgemm.Matrix) bool {
	const low = 1<<16 - 1
	for _, m := range all {
		wide := make([]bool, m.Rows)
		parallel.Do(m.Rows, workers, func(n int) {
			for _, v := range m.Row(n) {
				if math.Float32bits(v)&low != 0 {
					wide[n] = true
					return
				}
			}
		})
		for _, w := range wide {
			if w {
				return false
			}
		}
	}
	return true
}
