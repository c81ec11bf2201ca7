package forward

import (
	"context"
	"errors"
	"slices"
)

// Divergence is how far the predictions of a state are from those of a reference: the mean over all
// tokens of KL(reference ‖ state), in nats. Both are behind the last block and of the same tokens.
// It is a measure of sensitivity with little noise: unlike the loss it does not depend on which token
// happened to follow.
func (d *Decoder) Divergence(ctx context.Context, ref *State, refW Weights, s *State, w Weights) (float64, error) {
	for _, state := range []*State{ref, s} {
		if err := state.at(len(d.blocks)); err != nil {
			return 0, err
		}
	}
	if !slices.EqualFunc(ref.Tokens, s.Tokens, slices.Equal[[]int32]) {
		return 0, errors.New("the divergence is of states with the same tokens: start both from the same sequences")
	}
	p, err := d.loadOutput(ctx, refW, ref)
	if err != nil {
		return 0, err
	}
	q, err := d.loadOutput(ctx, w, s)
	if err != nil {
		return 0, err
	}
	nats := make([]float64, s.Hidden.Rows)
	for b := range s.batches() {
		xp, err := p.inputs(ctx, b, ref)
		if err != nil {
			return 0, err
		}
		xq, err := q.inputs(ctx, b, s)
		if err != nil {
			return 0, err
		}
		for from := 0; from < b.rows; from += p.logits.Rows {
			yp, err := p.logitsOf(ctx, xp, from)
			if err != nil {
				return 0, err
			}
			yq, err := q.logitsOf(ctx, xq, from)
			if err != nil {
				return 0, err
			}
			err = d.rows(ctx, yp.Rows, func(i int) { nats[b.row+from+i] = divergence(yp.Row(i), yq.Row(i)) })
			if err != nil {
				return 0, err
			}
		}
	}
	mean := total64(nats) / float64(len(nats))
	if mean-mean != 0 {
		return 0, errors.New("the divergence is not finite: look for NaN, infinite or very large weights in the last norm and the head")
	}
	return mean, nil
}

// divergence is KL(softmax(p) ‖ softmax(q)): the mean of p - q under softmax(p), less the difference
// of their logarithms of sums.
func divergence(p, q []float32) float64 {
	logP, logQ := logSumExp(p), logSumExp(q)
	mean := 0.0
	for i, v := range p {
		mean += float64(exp(float64(v)-logP) * (float64(v) - float64(q[i])))
	}
	return mean + (logQ - logP)
}
