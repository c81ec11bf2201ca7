//go:build linux

package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// editShard returns a disk on which one bit of a shard of the source has changed. The bit is in the middle of a tensor, which
// the source's fingerprint does not cover.
func editShard(start tree, name string) (tree, error) {
	name = path.Join("src", name)
	edited := start[name]
	place, err := largest([]byte(edited.data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	data := []byte(edited.data)
	data[place] ^= 1
	edited.data = string(data)
	out := maps.Clone(start)
	out[name] = edited
	return out, nil
}

// largest returns the offset of the middle of the largest tensor of a safetensors file.
func largest(data []byte) (int64, error) {
	folder, err := os.MkdirTemp("", "torture")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "shard")
	if err := os.WriteFile(path, data, 0o666); err != nil {
		return 0, err
	}
	f, err := weights.OpenFile(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	t := slices.MaxFunc(f.Tensors, func(a, b weights.Info) int { return cmp.Compare(a.Size(), b.Size()) })
	if t.Size() <= 2*plan.SampleBytes {
		return 0, errors.New("no tensor is larger than what the fingerprint holds")
	}
	return int64(len(f.Head())) + (t.Begin+t.End)/2, nil
}
