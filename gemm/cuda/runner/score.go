package runner

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
)

// chunkLogits limits the number of logits that are on the card at a time. A chunk has at least one row.
const chunkLogits = 1 << 28

// score computes the losses of all tokens.
func (r *Pass) score(ctx context.Context) error {
	head := r.model.decoder.Head
	nats, err := r.each(ctx, func(b batch, from, rows int, out cuda.Address) error {
		logits, err := b.logits("logits", b.h, from, rows)
		if err != nil {
			return err
		}
		targets, err := b.targets(r.tokens, from, rows)
		if err != nil {
			return err
		}
		return b.kernels.loss.Launch(cuda.Grid{X: rows}, cuda.Grid{X: threads}, out, logits, targets, r.model.decoder.Vocab, head.Scale, float32(head.Cap))
	})
	if err != nil {
		return err
	}
	r.Scores = &forward.Scores{}
	for i, t := range r.tokens {
		n := len(t)
		one := nats[: n-1 : n-1]
		if at := slices.IndexFunc(one, notFinite); at >= 0 {
			return fmt.Errorf("the loss in sequence %d at position %d is not finite: look for NaN, infinite or very large weights in the last norm and the head", i, at)
		}
		r.Scores.Nats = append(r.Scores.Nats, one)
		nats = nats[n:]
	}
	return nil
}

func notFinite(v float64) bool { return v-v != 0 }

// each runs f for chunks of rows of all batches. f queues a kernel that writes one float64 per row to out. each returns
// these numbers for all rows, in order.
func (r *Pass) each(ctx context.Context, f func(b batch, from, rows int, out cuda.Address) error) ([]float64, error) {
	var all []float64
	chunk := max(1, chunkLogits/r.model.decoder.Vocab)
	for _, b := range r.batches {
		b.flags, b.grams = 0, r.grams
		for from := 0; from < b.rows; from += chunk {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			rows := min(chunk, b.rows-from)
			out, err := b.buffer("numbers", 8*rows)
			if err != nil {
				return nil, err
			}
			if err := f(b, from, rows, out); err != nil {
				return nil, err
			}
			data := make([]byte, 8*rows)
			if err := b.device.Download(data, out); err != nil {
				return nil, err
			}
			for i := range rows {
				all = append(all, math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:])))
			}
		}
	}
	return all, nil
}

// logits queues the float32 logits of some rows of h into a buffer, without the head's scale and cap.
func (p *pass) logits(name string, h cuda.Address, from, rows int) (cuda.Address, error) {
	part := *p
	part.rows = rows
	x, err := part.buffer("normed", rows*p.hidden*p.act.Bytes())
	if err != nil {
		return 0, err
	}
	y, err := part.buffer(name, rows*p.decoder.Vocab*4)
	if err != nil {
		return 0, err
	}
	h = h.Plus(from * p.hidden * p.act.Bytes())
	if p.final.Missing() {
		x = h
	} else if err := part.normalize(p.final, x, h, p.hidden, p.hidden, false, 1); err != nil {
		return 0, err
	}
	return y, part.apply(p.head, y, x, rows, p.hidden, p.decoder.Vocab, cuda.FP32, false)
}

// targets uploads the next token of each row, and -1 for the last row of a sequence.
func (b batch) targets(tokens [][]int32, from, rows int) (cuda.Address, error) {
	var all []int32
	for _, t := range tokens[b.first : b.first+b.sequences] {
		all = append(append(all, t[1:]...), -1)
	}
	at, err := b.buffer("targets", 4*rows)
	if err != nil {
		return 0, err
	}
	data := make([]byte, 0, 4*rows)
	for _, v := range all[from : from+rows] {
		data = binary.LittleEndian.AppendUint32(data, uint32(v))
	}
	return at, b.device.Upload(at, data)
}

// Divergence returns the divergence of a pass from a reference: the mean over all tokens of KL(reference ‖ pass), in
// nats. Both passes must have the same tokens, device and vocabulary.
func (r *Pass) Divergence(ctx context.Context, reference *Pass) (float64, error) {
	if !slices.EqualFunc(r.tokens, reference.tokens, slices.Equal[[]int32]) || r.model.device != reference.model.device ||
		r.model.decoder.Vocab != reference.model.decoder.Vocab {
		return 0, errors.New("a divergence needs two passes with the same tokens and vocabulary on the same device")
	}
	for _, p := range []*Pass{r, reference} {
		if err := p.open(); err != nil {
			return 0, err
		}
	}
	head := r.model.decoder.Head
	var nats []float64
	err := r.model.device.Do(func() (err error) {
		at := 0 // index of the batch
		nats, err = r.each(ctx, func(b batch, from, rows int, out cuda.Address) error {
			for reference.batches[at].first != b.first {
				at++
			}
			other := reference.batches[at]
			other.flags, other.grams = 0, nil
			p, err := other.logits("logits", other.h, from, rows)
			if err != nil {
				return err
			}
			q, err := b.logits("other logits", b.h, from, rows)
			if err != nil {
				return err
			}
			return b.kernels.divergence.Launch(cuda.Grid{X: rows}, cuda.Grid{X: threads}, out, p, q, r.model.decoder.Vocab, head.Scale, float32(head.Cap))
		})
		return err
	})
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, v := range nats {
		sum += v
	}
	mean := sum / float64(len(nats))
	if notFinite(mean) {
		return 0, errors.New("the divergence is not finite: look for NaN, infinite or very large weights in the last norm and the head")
	}
	return mean, nil
}

// Logits returns the logits of every token of a pass, row by row, with the head's scale and cap.
func (r *Pass) Logits(ctx context.Context) ([][]float32, error) {
	if err := r.open(); err != nil {
		return nil, err
	}
	vocab, head := r.model.decoder.Vocab, r.model.decoder.Head
	var all [][]float32
	err := r.model.device.Do(func() error {
		_, err := r.each(ctx, func(b batch, from, rows int, out cuda.Address) error {
			y, err := b.logits("logits", b.h, from, rows)
			if err != nil {
				return err
			}
			data := make([]byte, 4*rows*vocab)
			if err := b.device.Download(data, y); err != nil {
				return err
			}
			for i := range rows {
				row := make([]float32, vocab)
				for j := range row {
					v := float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*(i*vocab+j):]))) * float64(head.Scale)
					if head.Cap > 0 {
						v = head.Cap * math.Tanh(v/head.Cap)
					}
					row[j] = float32(v)
				}
				all = append(all, row)
			}
			return b.device.Clear(out, 8*rows)
		})
		return err
	})
	return all, err
}
