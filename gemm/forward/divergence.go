package forward

import (
	"context"
	"errors"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/forward/vector"
)

// Divergence returns the divergence of a state's predictions from those of a reference in nats: the mean over all
// tokens of KL(reference ‖ state). It also returns the losses of the state. The state must be after the last block and
// have the reference's tokens. The divergence has less noise than the loss, because it does not depend on the tokens
// that follow in the text.
func (d *Decoder) Divergence(ctx context.Context, ref *Result, s *State, w Weights) (float64, *Scores, error) {
	if err := s.at(d.Blocks()); err != nil {
		return 0, nil, err
	}
	if !slices.EqualFunc(ref.End.Tokens, s.Tokens, slices.Equal[[]int32]) {
		return 0, nil, errors.New("a divergence needs two states with the same tokens: start both from the same sequences")
	}
	p, err := d.referenceLogits(ctx, ref)
	if err != nil {
		return 0, nil, err
	}
	q, err := d.loadOutput(ctx, w, s, nil)
	if err != nil {
		return 0, nil, err
	}
	losses, targets := make([]float64, s.Hidden.Rows), s.targets()
	nats := make([]float64, s.Hidden.Rows)
	err = q.eachChunk(s, func(c chunk) error {
		logits, logSum, err := p.chunk(c)
		if err != nil {
			return err
		}
		return q.rows(c.logits.Rows, func(i int) {
			row, y := c.row+i, c.logits.Row(i)
			sum := logSumExp(y)
			nats[row] = divergence(logits.Row(i), y, logSum(i), sum)
			if target := targets[row]; target >= 0 {
				losses[row] = sum - float64(y[target])
			}
		})
	})
	if err != nil {
		return 0, nil, err
	}
	mean := total64(nats) / float64(len(nats))
	if mean-mean != 0 {
		return 0, nil, errors.New("the divergence is not finite: look for NaN, infinite or very large weights in the last norm and the head")
	}
	scores, err := s.scores(losses)
	return mean, scores, err
}

// divergence returns KL(softmax(p) ‖ softmax(q)). logP and logQ are the logarithms of the sums of exponentials of p and
// q. The result is the mean of p - q under softmax(p), minus logP - logQ.
func divergence(p, q []float32, logP, logQ float64) float64 {
	mean := 0.0
	for i, v := range p {
		mean += float64(vector.Exp(float64(v)-logP) * (float64(v) - float64(q[i])))
	}
	return mean + (logQ - logP)
}
