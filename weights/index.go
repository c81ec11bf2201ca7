package weights

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/internal/bounded"
)

// IndexName is the file that says which shard of a folder holds which tensor.
const IndexName = "model.safetensors.index.json"

// readIndex returns the weight_map of the model's index file, from tensor to shard. Names of shards are
// plain file names of the same folder.
func (m *Model) readIndex() (map[string]string, error) {
	js, err := m.ReadFile(IndexName, bounded.Index)
	if err != nil {
		return nil, err
	}
	weightMap, err := parseIndex(js)
	if format, ok := errors.AsType[*FormatError](err); ok {
		format.File = m.Path(IndexName)
	}
	return weightMap, err
}

// parseIndex uses the header's token walk, which finds keys that stand twice.
func parseIndex(js []byte) (weightMap map[string]string, err error) {
	p, err := newWalker(js, 0)
	if err != nil {
		return nil, err
	}
	err = p.object("the index", func(key string) (err error) {
		if key == "weight_map" {
			weightMap, err = p.stringMap(key)
			return err
		}
		return p.skip()
	})
	if err == nil {
		err = p.end()
	}
	if err != nil {
		return nil, err
	}
	if len(weightMap) == 0 {
		return nil, &FormatError{Offset: -1, Msg: `has no tensors in "weight_map"`}
	}
	for _, tensor := range slices.Sorted(maps.Keys(weightMap)) {
		if shard := weightMap[tensor]; !isFileName(shard) {
			return nil, &FormatError{Tensor: tensor, Offset: -1, Msg: fmt.Sprintf("shard %q is not a file in this folder", shard)}
		}
	}
	return weightMap, nil
}

// shardsIn lists the shards that an index names, sorted.
func shardsIn(weightMap map[string]string) []string {
	return slices.Compact(slices.Sorted(maps.Values(weightMap)))
}

// isFileName tells the name of a file, on any system, from a path to elsewhere.
func isFileName(s string) bool {
	return s == filepath.Base(s) && !strings.ContainsAny(s, `/\`) && s != ".." && s != "."
}

// EncodeIndex renders an index file: tensor to shard, and the bytes of all tensors together.
func EncodeIndex(weightMap map[string]string, totalSize int64) []byte {
	js, _ := json.MarshalIndent(map[string]any{ // cannot fail
		"metadata":   map[string]int64{"total_size": totalSize},
		"weight_map": weightMap,
	}, "", "  ")
	return append(js, '\n')
}

// checkIndex holds an index against the shards it names.
func checkIndex(path string, weightMap map[string]string, shards []*File) error {
	for _, s := range shards {
		base := filepath.Base(s.Path)
		for _, t := range s.Tensors {
			if owner, ok := weightMap[t.Name]; !ok {
				return &FormatError{File: s.Path, Tensor: t.Name, Offset: int64(s.head) + t.Begin, Msg: "the index " + filepath.Base(path) + " does not list it"}
			} else if owner != base {
				return &FormatError{File: s.Path, Tensor: t.Name, Offset: int64(s.head) + t.Begin, Msg: "the index puts it into " + owner}
			}
		}
	}
	held := map[string]*File{}
	for _, s := range shards {
		held[filepath.Base(s.Path)] = s
	}
	for _, tensor := range slices.Sorted(maps.Keys(weightMap)) {
		if _, ok := held[weightMap[tensor]].Tensor(tensor); !ok {
			return &FormatError{File: path, Tensor: tensor, Offset: -1, Msg: "is not in " + weightMap[tensor]}
		}
	}
	return nil
}
