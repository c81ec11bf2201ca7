package forward

import (
	"context"
	"fmt"
)

// Score computes the loss of every predicted token from the state after the last block. o receives the head's inputs
// unless the head is tied to the embedding. o may be nil.
func (d *Decoder) Score(ctx context.Context, w Weights, s *State, o Observer) (*Scores, error) {
	return d.score(ctx, w, &Result{End: s}, o)
}

// score is Score for the result's end state. It also keeps the logits if they are within the limit.
func (d *Decoder) score(ctx context.Context, w Weights, r *Result, o Observer) (*Scores, error) {
	s := r.End
	if err := s.at(d.Blocks()); err != nil {
		return nil, err
	}
	head, err := d.loadOutput(ctx, w, s, o)
	if err != nil {
		return nil, err
	}
	nats, targets := make([]float64, s.Hidden.Rows), s.targets()
	err = head.eachChunk(s, func(c chunk) error {
		return head.rows(c.logits.Rows, func(i int) {
			row, y := c.row+i, c.logits.Row(i)
			target := targets[row]
			if target < 0 && r.logSums == nil {
				return
			}
			sum := logSumExp(y)
			if target >= 0 {
				nats[row] = sum - float64(y[target])
			}
			if r.logSums != nil {
				r.logSums[row] = sum
				copy(r.logits.Row(row), y)
			}
		})
	})
	if err != nil {
		return nil, err
	}
	return s.scores(nats)
}

// targets returns the next token of each token, and -1 for the last token of a sequence.
func (s *State) targets() []int32 {
	targets := make([]int32, 0, s.Hidden.Rows)
	for _, tokens := range s.Tokens {
		targets = append(append(targets, tokens[1:]...), -1)
	}
	return targets
}

// scores returns the losses of all tokens, divided into sequences.
func (s *State) scores(nats []float64) (*Scores, error) {
	all := &Scores{}
	for i, tokens := range s.Tokens {
		n := len(tokens)
		all.Nats = append(all.Nats, nats[:n-1:n-1])
		for at, v := range nats[:n-1] {
			if v-v != 0 {
				return nil, fmt.Errorf("the loss in sequence %d at position %d is not finite: look for NaN, infinite or very large weights in the last norm and the head", i, at)
			}
		}
		nats = nats[n:]
	}
	return all, nil
}
