package divergence

import (
	"context"
	"errors"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
)

// Options are the options of [New] and [FromPass].
type Options struct {
	// Progress is called after each of total parts of the pass: the blocks and the head. Default: not called. FromPass does not use
	// it.
	Progress func(done, total int)
	// PerLayer is the number of sequences, counted from the first, by which [Evaluator.PerLayer]
	// evaluates. Default 0: all.
	PerLayer int
}

// sensitivityTokens is the approximate number of tokens that suffices to measure a layer's sensitivity.
const sensitivityTokens = 4096

// FewSequences returns the number of sequences, counted from the first, that suffice to measure the sensitivity
// of single layers ([Options.PerLayer]). Together they have about 4096 tokens. The result is at least 1.
func FewSequences(tokens [][]int32) int {
	n, sum := 0, 0
	for _, sequence := range tokens {
		if sum += len(sequence); sum > sensitivityTokens {
			break
		}
		n++
	}
	return max(1, n)
}

// Evaluator compares other weights with a model's own, on the same tokens. Only one goroutine may use it.
type Evaluator struct {
	d    *forward.Decoder
	own  forward.Weights
	all  *forward.Result // result of the model's own weights
	few  *forward.Result // the sequences for PerLayer
	last *trace          // state of the last WholeModel; nil: none
}

// New runs the model over the tokens and returns an evaluator with the results. own are the model's weights, which every
// comparison reads again. The caller must not change the sequences afterwards.
func New(ctx context.Context, d *forward.Decoder, own forward.Weights, tokens [][]int32, o Options) (*Evaluator, error) {
	if d == nil || own == nil {
		return nil, errors.New("the decoder or its weights are nil: an evaluator needs both")
	}
	r, err := d.Pass(ctx, own, tokens, forward.PassOptions{
		Keep: forward.Keep{Entries: o.perLayer(len(tokens))},
		Step: func(done, total int) error {
			if o.Progress != nil {
				o.Progress(done, total)
			}
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	return FromPass(d, own, r, o), nil
}

// FromPass is New with an existing pass of own over the tokens. The pass should have kept [Options.PerLayer] entries; PerLayer
// computes missing entries again.
func FromPass(d *forward.Decoder, own forward.Weights, r *forward.Result, o Options) *Evaluator {
	return &Evaluator{d: d, own: own, all: r, few: r.First(o.perLayer(len(r.End.Tokens)))}
}

func (o Options) perLayer(sequences int) int {
	if o.PerLayer <= 0 {
		return sequences
	}
	return min(o.PerLayer, sequences)
}

// Loss returns the loss of the model's own weights, in nats per predicted token.
func (e *Evaluator) Loss() float64 { return e.all.Scores.Loss() }

// finish runs the remaining blocks on a state, and returns its divergence from the model's own result.
func (e *Evaluator) finish(ctx context.Context, own *forward.Result, s *forward.State, w forward.Weights) (float64, *forward.Scores, error) {
	for s.Next < e.d.Blocks() {
		if err := e.d.Block(ctx, s.Next, w, s, nil); err != nil {
			return 0, nil, err
		}
	}
	return e.d.Divergence(ctx, own, s, w)
}
