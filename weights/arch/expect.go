package arch

import (
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Expect lists the tensors that a checkpoint with this config.json has: embedding, layer by
// layer, final norm, head; optional ones left out. The element type is config.json's "dtype" or
// "torch_dtype", BF16 where it has neither. Begin and End are set as though all lay in one file.
// It fails where config.json lacks a number, has one that is impossible, or asks for more than
// can be addressed.
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
			err = fmt.Errorf("config.json: tensor %q of shape %v does not fit any file", info.Name, info.Shape)
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

// byteLen is the number of bytes of a tensor of whole-byte elements; ok is false where it
// overflows.
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
