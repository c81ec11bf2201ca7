package forward

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// experts are routed experts: feed-forward networks, of which a router chooses a few for each token. One expert is in
// memory at a time; see [Decoder.expertStep].
type experts struct {
	router     linear
	correction []float32 // nil: no correction
	routing    decoder.Routing
	each       []*decoder.FFN
	neurons    // buffers of the loaded expert
	logits     sgemm.Matrix
	x, z       sgemm.Matrix // inputs and outputs for the tokens of one expert
}

// loadExperts loads the router, and allocates buffers for batches of rows rows.
func loadExperts(ctx context.Context, w Weights, d *decoder.Experts, rows int) (*experts, error) {
	e := &experts{routing: d.Routing, each: d.Each, neurons: newNeurons(d.Each[0], rows)}
	var err error
	if e.router, err = loadLinear(ctx, w, d.Router); err != nil {
		return nil, err
	}
	if e.correction, err = optional(ctx, w, d.Correction, d.Router.Outputs); err != nil {
		return nil, err
	}
	e.logits = sgemm.Dense(rows, d.Router.Outputs, nil)
	e.x, e.z = sgemm.Dense(rows, d.Router.Inputs, nil), sgemm.Dense(rows, d.Router.Inputs, nil)
	return e, nil
}

// route returns the tokens of a batch for each expert.
func (e *experts) route(p *pass, x sgemm.Matrix) ([][]routed, error) {
	logits := e.logits.Slice(0, x.Rows, 0, e.logits.Cols)
	if err := e.router.apply(p, logits, x); err != nil {
		return nil, err
	}
	chosen := make([][]choice, x.Rows)
	err := p.rows(x.Rows, func(i int) { chosen[i] = choose(e.routing, logits.Row(i), e.correction) })
	tokens := make([][]routed, len(e.each))
	for row, choices := range chosen {
		for _, c := range choices {
			tokens[c.expert] = append(tokens[c.expert], routed{row, float32(c.weight)})
		}
	}
	return tokens, err
}

// routed is a token that is routed to an expert.
type routed struct {
	row    int
	weight float32 // factor of the expert's output
}

// expert adds the outputs of one expert for its tokens to y.
func (e *experts) expert(p *pass, f *ffn, tokens []routed, y, x sgemm.Matrix) error {
	in, out := e.x.Slice(0, len(tokens), 0, x.Cols), e.z.Slice(0, len(tokens), 0, x.Cols)
	for i, t := range tokens {
		copy(in.Row(i), x.Row(t.row))
	}
	if err := p.observe(in, f.in.described()...); err != nil {
		return err
	}
	if err := f.apply(p, out, in); err != nil {
		return err
	}
	return p.rows(len(tokens), func(i int) {
		to := y.Row(tokens[i].row)
		for j, v := range out.Row(i) {
			to[j] += float32(tokens[i].weight * v)
		}
	})
}
