package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sort"

	"github.com/lowtoggle/lowtoggle/weights"
)

// SampleBytes is the number of bytes at every tensor's start, and also at its end, that a model's fingerprint covers.
const SampleBytes = 4096

// sampledAhead is the number of tensors whose samples are read at the same time.
const sampledAhead = 1024

func firstOf(data []byte) []byte { return data[:min(len(data), SampleBytes)] }
func lastOf(data []byte) []byte  { return data[max(0, len(data)-SampleBytes):] }

// Fingerprint identifies a model by its headers and samples of its data; it does not read the whole model.
func Fingerprint(m *weights.Model) (fp Model, err error) {
	if err := m.Usable(); err != nil {
		return fp, err
	}
	h := sha256.New()
	infos := m.Infos()
	sort.Slice(infos, func(i, j int) bool { return infos[i].Name < infos[j].Name })
	tensors := make([]weights.Tensor, len(infos))
	for i, info := range infos {
		tensors[i], _ = m.Tensor(info.Name)
	}
	for _, s := range m.Shards {
		defer weights.Sampled(s.Data())()
	}
	for i, t := range tensors {
		if i%sampledAhead == 0 {
			for _, s := range m.Shards {
				weights.Forget(s.Data())
			}
			for _, next := range tensors[i:min(i+sampledAhead, len(tensors))] {
				weights.Prefetch(firstOf(next.Data))
				weights.Prefetch(lastOf(next.Data))
			}
		}
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
	fp.Tensors = len(infos)
	fp.SHA256 = hex.EncodeToString(h.Sum(nil))
	return fp, nil
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
		return fmt.Errorf("%w: it was made for another model (%d tensors, %d bytes, %.12s…) than %s (%d tensors, %d bytes, %.12s…)",
			ErrInvalid, p.Model.Tensors, p.Model.Bytes, p.Model.SHA256, dir, fp.Tensors, fp.Bytes, fp.SHA256)
	}
	return nil
}
