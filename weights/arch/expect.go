package arch

import (
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Expect lists the tensors that a checkpoint with this config.json has: embedding, layer by layer, final norm, head. It
// leaves out optional tensors. The element type is config.json's "dtype" or "torch_dtype", BF16 if both are absent. Begin and
// End are offsets in a single file with all tensors. Expect returns an error if config.json lacks a number or has an
// impossible number, or if a tensor or the file would be too large to address.
func (f *Family) Expect(configJSON []byte) ([]weights.Info, error) {
	m, err := f.read(configJSON)
	if err != nil {
		return nil, err
	}
	dtype, err := m.config.dtype()
	if err != nil {
		return nil, err
	}
	var infos []weights.Info
	end := int64(0)
	m.expected(func(t *tensor, coord []int) bool {
		if t.Optional {
			return true
		}
		info := weights.Info{Name: t.pattern.name(f.prefixes[0], coord), DType: dtype, Shape: t.shape(), Begin: end}
		size, ok := byteLen(dtype, info.Shape)
		if !ok || size > math.MaxInt64-end {
			err = fmt.Errorf("config.json: tensor %q of shape %v is too large for a file", info.Name, info.Shape)
			return false
		}
		end += size
		info.End = end
		infos = append(infos, info)
		return true
	})
	if err != nil {
		return nil, err
	}
	return infos, nil
}

// byteLen returns the number of bytes of a tensor of whole-byte elements; ok is false on overflow.
func byteLen(d weights.DType, shape []int) (n int64, ok bool) {
	n = int64(d.Bits() / 8)
	for _, s := range shape {
		if n > math.MaxInt64/int64(s) {
			return 0, false
		}
		n *= int64(s)
	}
	return n, true
}

// expected calls visit for every tensor that the config asks for, layer by layer, until visit returns false. coord holds the
// loops' values by slot, and belongs to expected.
func (m *model) expected(visit func(t *tensor, coord []int) bool) {
	m.expect(m.tensors, 0, make([]int, len(m.size)), visit)
}

// expect runs over tensors whose first depth variables are fixed. Neighbours with the same next
// variable run through it together.
func (m *model) expect(ts []*tensor, depth int, coord []int, visit func(*tensor, []int) bool) bool {
	for len(ts) > 0 {
		slot, n := ts[0].variable(depth), 1
		if slot < 0 {
			if !visit(ts[0], coord) {
				return false
			}
			ts = ts[1:]
			continue
		}
		for n < len(ts) && ts[n].variable(depth) == slot {
			n++
		}
		for v := range m.size[slot] {
			coord[slot] = v
			if !m.expect(inRange(ts[:n], depth, v), depth+1, coord, visit) {
				return false
			}
		}
		ts = ts[n:]
	}
	return true
}

// inRange returns the tensors whose first variable takes the value v.
func inRange(ts []*tensor, depth, v int) []*tensor {
	if depth > 0 {
		return ts
	}
	var in []*tensor
	for _, t := range ts {
		if v >= t.from && v < t.to {
			in = append(in, t)
		}
	}
	return in
}
