package forward

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// experts are feed-forward networks. A router chooses a few of them for each token. All experts of a layer are
// in memory together.
type experts struct {
	router     linear
	correction string // tensor added to scores while choosing; empty: none
	routing    routing
	each       []*mixed
}

func (e *experts) first() []linear { return []linear{e.router} }

func (e *experts) rest() []linear {
	var all []linear
	for _, m := range e.each {
		all = append(append(all, m.in...), m.out)
	}
	return all
}

type loadedExperts struct {
	*experts
	router     loaded
	correction []float32
	each       []*loadedMixed
	logits     sgemm.Matrix
	x, y       sgemm.Matrix // of the tokens of one expert
}

func (e *experts) load(ctx context.Context, w Weights, rows int) (loadedPart, error) {
	l := &loadedExperts{experts: e}
	var err error
	if l.router, err = e.router.load(ctx, w); err != nil {
		return nil, err
	}
	if l.correction, err = optional(ctx, w, e.correction, e.router.outputs); err != nil {
		return nil, err
	}
	y, z := e.each[0].room(rows) // they take turns
	for _, m := range e.each {
		one, err := m.loadLayers(ctx, w)
		if err != nil {
			return nil, err
		}
		one.y, one.z = y, z
		l.each = append(l.each, one)
	}
	l.logits = sgemm.Dense(rows, e.router.outputs, nil)
	l.x, l.y = sgemm.Dense(rows, e.router.inputs, nil), sgemm.Dense(rows, e.router.inputs, nil)
	return l, nil
}

func (l *loadedExperts) apply(p *pass, y, x sgemm.Matrix) error {
	logits := l.logits.Slice(0, x.Rows, 0, l.logits.Cols)
	if err := p.Decoder.apply(p, l.router, logits, x); err != nil {
		return err
	}
	chosen := make([][]choice, x.Rows)
	err := p.rows(p, x.Rows, func(i int) {
		chosen[i] = l.routing.choose(logits.Row(i), l.correction)
		clear(y.Row(i))
	})
	if err != nil {
		return err
	}
	tokens := make([][]routed, len(l.each))
	for row, choices := range chosen {
		for _, c := range choices {
			tokens[c.expert] = append(tokens[c.expert], routed{row, float32(c.weight)})
		}
	}
	for i, m := range l.each {
		if len(tokens[i]) == 0 {
			continue
		}
		if err := l.expert(p, m, tokens[i], y, x); err != nil {
			return err
		}
	}
	return nil
}

// routed is a token that an expert is given.
type routed struct {
	row    int
	weight float32 // factor of the expert's output
}

// expert adds the outputs of one expert for its tokens to y.
func (l *loadedExperts) expert(p *pass, m *loadedMixed, tokens []routed, y, x sgemm.Matrix) error {
	in, out := l.x.Slice(0, len(tokens), 0, x.Cols), l.y.Slice(0, len(tokens), 0, x.Cols)
	for i, t := range tokens {
		copy(in.Row(i), x.Row(t.row))
	}
	if err := p.observe(in, m.mixed.in...); err != nil {
		return err
	}
	if err := m.apply(p, out, in); err != nil {
		return err
	}
	return p.rows(p, len(tokens), func(i int) {
		to := y.Row(tokens[i].row)
		for j, v := range out.Row(i) {
			to[j] += float32(tokens[i].weight * v)
		}
	})
}

func (b *builder) experts(layer int, data *expertsData) *experts {
	e := &experts{router: b.linear(data.router, layer), routing: b.routing(data)}
	if data.correction != "" {
		if c := b.claim(data.correction, layer, 1); c != nil {
			e.correction = c.Name
		}
	}
	n := e.router.outputs
	for i := range n {
		m := &mixed{out: b.expert(data.each.out, layer, i, n)}
		for _, kind := range data.each.in {
			m.in = append(m.in, b.expert(kind, layer, i, n))
		}
		m.mix = &ffn{neurons: m.out.inputs, gated: data.each.gated, act: b.activation()}
		b.fits(m)
		e.each = append(e.each, m)
	}
	b.grouped(e)
	return e
}

// expert finds a layer of expert i of n.
func (b *builder) expert(kind string, layer, i, n int) linear {
	all := b.claims[module{kind, layer}]
	if len(all) != n {
		b.failf("the checkpoint has %d of %s in layer %d, and its router knows %d experts: use one with all of the model", len(all), kind, layer, n)
		return linear{}
	}
	l := newLinear(all[i])
	l.routed = true
	return l
}
