package divergence

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
)

// trace has states of an evaluated model that the next model may reuse: the states before its blocks, within
// [forward.DefaultKeptBytes], and digests of the weights behind them.
type trace struct {
	states []*forward.State // before each of the first blocks
	asked  [][]tensor       // asked[i]: tensors that the embedding or the block behind states[i] has read
}

// tensor is a tensor's name and a digest of its values.
type tensor struct {
	name   string
	digest [sha256.Size]byte
}

// retrace runs a model's blocks over all tokens, without those that it shares with the model before.
func (e *Evaluator) retrace(ctx context.Context, w forward.Weights) (s *forward.State, err error) {
	r := &recorder{Weights: w, kept: map[string][]float32{}}
	now, err := e.last.shared(ctx, r)
	e.last = nil // frees the states while this model runs; set again on success
	if err != nil {
		return nil, err
	}
	if n := len(now.states); n > 0 {
		s = now.states[n-1].Clone()
	} else if s, err = e.d.Start(ctx, r, e.all.End.Tokens); err != nil {
		return nil, err
	}
	for s.Next < e.d.Blocks() {
		if s.Next == len(now.states) {
			now.add(s, r.asked)
		}
		r.asked = nil
		if err := e.d.Block(ctx, s.Next, r, s, nil); err != nil {
			return nil, err
		}
		clear(r.kept)
	}
	e.last = now
	return s, nil
}

// shared returns the part of a trace whose weights another model has, too. A nil trace has none.
func (t *trace) shared(ctx context.Context, r *recorder) (*trace, error) {
	now := &trace{}
	if t == nil {
		return now, nil
	}
	for i, tensors := range t.asked {
		same, err := r.same(ctx, tensors)
		if err != nil {
			return nil, err
		}
		if !same {
			break
		}
		now.states, now.asked = append(now.states, t.states[i]), append(now.asked, tensors)
	}
	return now, nil
}

// add keeps the state before the next block, if there is room.
func (t *trace) add(s *forward.State, asked []tensor) {
	if n := int64(len(t.states) + 1); 4*n*int64(len(s.Hidden.Data)) <= forward.DefaultKeptBytes {
		t.states, t.asked = append(t.states, s.Clone()), append(t.asked, asked)
	}
}

// recorder is a [forward.Weights] that records which tensors are read.
type recorder struct {
	forward.Weights
	asked []tensor
	kept  map[string][]float32 // tensors that were compared, for a block that must be computed
}

// Tensor implements [forward.Weights].
func (r *recorder) Tensor(ctx context.Context, name string) (values []float32, err error) {
	values, known := r.kept[name]
	if !known {
		if values, err = r.Weights.Tensor(ctx, name); err != nil {
			return nil, err
		}
	}
	r.asked = append(r.asked, tensor{name, digest(values)})
	return values, nil
}

// same reports whether the tensors' values are unchanged. If not, it keeps the tensors that it has read.
func (r *recorder) same(ctx context.Context, tensors []tensor) (bool, error) {
	for _, t := range tensors {
		values, err := r.Weights.Tensor(ctx, t.name)
		if err != nil {
			return false, err
		}
		r.kept[t.name] = values
		if digest(values) != t.digest {
			return false, nil
		}
	}
	clear(r.kept)
	return true, nil
}

// digest returns a hash of values.
func digest(values []float32) (d [sha256.Size]byte) {
	h := sha256.New()
	var buffer [4096]byte
	for part := range slices.Chunk(values, len(buffer)/4) {
		for i, v := range part {
			binary.LittleEndian.PutUint32(buffer[4*i:], math.Float32bits(v))
		}
		h.Write(buffer[:4*len(part)])
	}
	h.Sum(d[:0])
	return d
}
