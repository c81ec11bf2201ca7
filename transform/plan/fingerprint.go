package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
)

// SampleBytes is the number of bytes at every tensor's start, and also at its end, that a model's fingerprint covers.
const SampleBytes = 4096

// sampledAhead is the number of tensors whose samples are read in advance together.
const sampledAhead = 128

func firstOf(data []byte) []byte { return data[:min(len(data), SampleBytes)] }
func lastOf(data []byte) []byte  { return data[max(0, len(data)-SampleBytes):] }

// Fingerprint identifies a model by its headers and samples of its data; it does not read the whole model.
func Fingerprint(m *weights.Model) (fp Model, err error) {
	if err := m.Usable(); err != nil {
		return fp, err
	}
	h := sha256.New()
	tensors := byName(m)
	for _, s := range m.Shards {
		defer weights.Sampled(s.Data())()
	}
	for first := 0; first < len(tensors); first += sampledAhead {
		batch := tensors[first:min(first+sampledAhead, len(tensors))]
		prefetch(m, batch) // again: a limited cache may have dropped some of it
		prefetch(m, tensors[first+len(batch):min(first+2*sampledAhead, len(tensors))])
		for _, t := range batch {
			err = weights.Guard(t.File, func() error {
				fmt.Fprintf(h, "%q %s %v\n", t.Name, t.DType, t.Shape)
				h.Write(weights.Need(firstOf(t.Data)))
				h.Write(weights.Need(lastOf(t.Data)))
				return nil
			})
			if err != nil {
				return fp, err
			}
			fp.Bytes += t.Size()
		}
		forget(m, batch)
	}
	fp.Tensors = len(tensors)
	fp.SHA256 = hex.EncodeToString(h.Sum(nil))
	return fp, nil
}

// sampled is a tensor, with its shard's place in the model.
type sampled struct {
	weights.Tensor
	shard int
}

// byName returns the model's tensors, sorted by name. If two shards have the same name, both entries are the first
// shard's tensor.
func byName(m *weights.Model) (list []sampled) {
	for shard, f := range m.Shards {
		for _, info := range f.Tensors {
			t, _ := f.Tensor(info.Name)
			list = append(list, sampled{t, shard})
		}
	}
	slices.SortStableFunc(list, func(a, b sampled) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(list); i++ {
		if list[i].Name == list[i-1].Name {
			list[i] = list[i-1]
		}
	}
	return list
}

// near is the largest gap, in bytes, between samples that are read together.
const near = 16 << 10

// prefetch reads samples of tensors in advance. Neighbours in a file are read together.
func prefetch(m *weights.Model, tensors []sampled) {
	type span struct {
		shard      int
		first, end int64
	}
	var spans []span
	for _, t := range tensors {
		n := min(t.Size(), SampleBytes)
		spans = append(spans, span{t.shard, t.Begin, t.Begin + n}, span{t.shard, t.End - n, t.End})
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.shard, b.shard), cmp.Compare(a.first, b.first)) })
	for i := 0; i < len(spans); {
		s := spans[i]
		for i++; i < len(spans) && spans[i].shard == s.shard && spans[i].first <= s.end+near; i++ {
			s.end = max(s.end, spans[i].end)
		}
		if data := m.Shards[s.shard].Data(); s.end <= int64(len(data)) { // headers alone have no data
			weights.Prefetch(data[s.first:s.end])
		}
	}
}

// forget removes the shards of tensors from the process's memory.
func forget(m *weights.Model, tensors []sampled) {
	seen := map[int]bool{}
	for _, t := range tensors {
		if !seen[t.shard] {
			seen[t.shard] = true
			weights.Forget(m.Shards[t.shard].Data())
		}
	}
}

// CheckModel returns an error if the plan was made for another model.
func (p *Plan) CheckModel(m *weights.Model) error {
	fp, err := Fingerprint(m)
	if err != nil {
		return err
	}
	return p.CheckFingerprint(m.Dir, fp)
}

// CheckFingerprint returns an error if the plan was made for a model with another fingerprint. dir is the model's
// folder, for messages.
func (p *Plan) CheckFingerprint(dir string, fp Model) error {
	if fp.SHA256 != p.Model.SHA256 {
		return fmt.Errorf("%w: it was made for another model (%d tensors, %d bytes, %.12s…) than %s (%d tensors, %d bytes, %.12s…): give the model that the plan was made for",
			ErrInvalid, p.Model.Tensors, p.Model.Bytes, p.Model.SHA256, dir, fp.Tensors, fp.Bytes, fp.SHA256)
	}
	return nil
}
