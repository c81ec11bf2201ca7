package synth

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/weights"
)

func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tensors []weights.Info
		for i, n := range rapid.SliceOfN(rapid.IntRange(0, 50), 1, 30).Draw(t, "lengths") {
			d := rapid.SampledFrom([]weights.DType{weights.BF16, weights.F32, weights.I8}).Draw(t, "dtype")
			tensors = append(tensors, weights.Info{Name: fmt.Sprint(i), DType: d, Shape: []int{n}})
		}
		limit := rapid.Int64Range(1, 1000).Draw(t, "limit")
		shards, err := split(tensors, limit)
		if err != nil {
			t.Fatal(err)
		}
		held := map[string]string{}
		for i, s := range shards {
			want := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(shards))
			if len(shards) == 1 {
				want = "model.safetensors"
			}
			if s.file != want {
				t.Errorf("shard %d is named %s, want %s", i, s.file, want)
			}
			if s.size() > limit && nonEmpty(s.tensors) > 1 {
				t.Errorf("%s has %d bytes in %d tensors, the limit is %d", s.file, s.size(), len(s.tensors), limit)
			}
			for _, info := range s.tensors {
				if held[info.Name] != "" {
					t.Errorf("tensor %s is in %s and in %s", info.Name, held[info.Name], s.file)
				}
				held[info.Name] = s.file
			}
		}
		// The files are as few as the order allows: the first tensor of a file did not fit into the one before.
		for i := 1; i < len(shards); i++ {
			first := slices.IndexFunc(tensors, func(x weights.Info) bool { return held[x.Name] == shards[i].file })
			if x := tensors[first]; shards[i-1].size()+int64(x.Len()*x.DType.Bits()/8) <= limit {
				t.Errorf("%s begins with tensor %s, for which %s has room", shards[i].file, tensors[first].Name, shards[i-1].file)
			}
		}
		last := ""
		for _, info := range tensors {
			file := held[info.Name]
			if file == "" || file < last {
				t.Errorf("tensor %s is in %q, the one before it in %q", info.Name, file, last)
			}
			last = file
		}
	})
}

func nonEmpty(tensors []weights.Info) (n int) {
	for _, t := range tensors {
		if t.Size() > 0 {
			n++
		}
	}
	return n
}

func TestSplitRefusesWhatNoFileHolds(t *testing.T) {
	huge := weights.Info{Name: "w", DType: weights.F32, Shape: []int{1 << 31, 1 << 31}}
	if _, err := split([]weights.Info{huge}, 1); err == nil {
		t.Error("a tensor of 2^64 bytes was placed")
	}
}
