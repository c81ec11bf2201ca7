package synth

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/weights"
)

// shard is one safetensors file to be written.
type shard struct {
	file    string
	head    []byte
	tensors []weights.Info // placed, in the order of their data
}

// size returns the length of the data section in bytes.
func (s shard) size() int64 {
	if len(s.tensors) == 0 {
		return 0
	}
	return s.tensors[len(s.tensors)-1].End
}

// split assigns tensors, in order, to files of at most limit bytes of data each. A larger tensor has a file to itself.
func split(tensors []weights.Info, limit int64) ([]shard, error) {
	_, placed, err := weights.EncodeHeader(tensors, nil)
	if err != nil {
		return nil, err
	}
	var groups [][]weights.Info
	var size int64
	for _, t := range placed {
		if len(groups) == 0 || size+t.Size() > limit && size > 0 {
			groups = append(groups, nil)
			size = 0
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], t)
		size += t.Size()
	}
	shards := make([]shard, len(groups))
	for i, group := range groups {
		// Wide elements come first, as in upstream writers, so that all tensors are aligned.
		slices.SortStableFunc(group, func(a, b weights.Info) int { return cmp.Compare(b.DType.Bits(), a.DType.Bits()) })
		s := &shards[i]
		s.file = "model.safetensors"
		if len(groups) > 1 {
			s.file = fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(groups))
		}
		s.head, s.tensors, err = weights.EncodeHeader(group, map[string]string{"format": "pt"})
		if err != nil {
			return nil, err
		}
	}
	return shards, nil
}
