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

// IndexName is the name of the file that maps the tensors of a folder to its shards.
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

// parseIndex parses an index file.
func parseIndex(js []byte) (weightMap map[string]string, err error) {
	weightMap, plain := plainIndex(js)
	if !plain {
		if weightMap, err = walkIndex(js); err != nil {
			return nil, err
		}
	}
	if len(weightMap) == 0 {
		return nil, &FormatError{Offset: -1, Msg: `has no tensors in "weight_map": download the index again`}
	}
	if !slices.ContainsFunc(shardsIn(weightMap), func(shard string) bool { return !isFileName(shard) }) {
		return weightMap, nil
	}
	for _, tensor := range slices.Sorted(maps.Keys(weightMap)) {
		if shard := weightMap[tensor]; !isFileName(shard) {
			return nil, &FormatError{Tensor: tensor, Offset: -1, Msg: fmt.Sprintf("shard %q is not the name of a file in this folder: download the index again", shard)}
		}
	}
	return weightMap, nil
}

// walkIndex reads the JSON of an index in any form. It uses the header's walker, which finds duplicate keys.
func walkIndex(js []byte) (weightMap map[string]string, err error) {
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
	return weightMap, err
}

// shardsIn lists the shards that an index names, sorted.
func shardsIn(weightMap map[string]string) []string {
	shards := map[string]bool{}
	for _, shard := range weightMap {
		shards[shard] = true
	}
	return slices.Sorted(maps.Keys(shards))
}

// isFileName reports whether s is a plain file name on every system, not a path to another folder.
func isFileName(s string) bool {
	return s == filepath.Base(s) && !strings.ContainsAny(s, `/\`) && s != ".." && s != "."
}

// EncodeIndex returns an index file: the map from tensor to shard, and totalSize, the bytes of all tensors.
func EncodeIndex(weightMap map[string]string, totalSize int64) []byte {
	js, _ := json.MarshalIndent(map[string]any{ // cannot fail
		"metadata":   map[string]int64{"total_size": totalSize},
		"weight_map": weightMap,
	}, "", "  ")
	return append(js, '\n')
}

// otherIndex ends the messages about an index that contradicts the shards.
const otherIndex = ": download the index and the shards again"

// checkIndex returns an error if an index and its shards list different tensors.
func checkIndex(path string, weightMap map[string]string, shards []*File) error {
	for _, s := range shards {
		base := filepath.Base(s.Path)
		for _, t := range s.Tensors {
			if owner, ok := weightMap[t.Name]; !ok {
				return &FormatError{File: s.Path, Tensor: t.Name, Offset: int64(s.head) + t.Begin, Msg: "the index " + filepath.Base(path) + " does not list this tensor" + otherIndex}
			} else if owner != base {
				return &FormatError{File: s.Path, Tensor: t.Name, Offset: int64(s.head) + t.Begin, Msg: "the index puts this tensor into " + owner + otherIndex}
			}
		}
	}
	var listed int
	for _, s := range shards {
		listed += len(s.Tensors)
	}
	if listed == len(weightMap) { // the index then lists no other tensors, because each shard's are in it
		return nil
	}
	held := map[string]*File{}
	for _, s := range shards {
		held[filepath.Base(s.Path)] = s
	}
	for _, tensor := range slices.Sorted(maps.Keys(weightMap)) {
		if _, ok := held[weightMap[tensor]].Tensor(tensor); !ok {
			return &FormatError{File: path, Tensor: tensor, Offset: -1, Msg: "is not in " + weightMap[tensor] + otherIndex}
		}
	}
	return nil
}
