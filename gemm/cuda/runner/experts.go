package runner

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/decoder"
)

// experts are routed experts on the card. The host reads the router's choices and gathers the tokens of each expert,
// so a step with experts cannot be captured in a graph.
type experts struct {
	*decoder.Experts
	router     *linear
	correction cuda.Address // 0: none
	each       []*ffn
}

// errCaptured refuses a step with routed experts.
var errCaptured = errors.New("a step with routed experts cannot be captured in a graph: the host reads the router's choices")

func (l *loader) experts(ctx context.Context, e *decoder.Experts) (*experts, error) {
	if r := e.Routing; len(e.Each) > maxExperts || r.Groups > maxGroups || r.Groups > 0 && len(e.Each)/r.Groups > 256 {
		return nil, fmt.Errorf("tensor %q: %d experts in %d groups are more than the routing kernel takes", e.Router.Weight, len(e.Each), r.Groups)
	}
	on := &experts{Experts: e}
	var err error
	if on.router, err = l.linear(ctx, e.Router); err != nil {
		return nil, err
	}
	if on.correction, err = l.vector(ctx, e.Correction, len(e.Each), 0); err != nil {
		return nil, err
	}
	for _, f := range e.Each {
		one, err := l.ffn(ctx, f)
		if err != nil {
			return nil, err
		}
		on.each = append(on.each, one)
	}
	return on, nil
}

func (e *experts) run(p *pass, to, x cuda.Address, add bool) error {
	if !add {
		if err := p.device.Clear(to, align4(p.rows*p.hidden*p.act.Bytes())); err != nil {
			return err
		}
	}
	rows, weights, err := e.route(p, x)
	if err != nil {
		return err
	}
	most, all := 0, 0
	for _, r := range rows {
		most, all = max(most, len(r)), all+len(r)
	}
	in, err := p.buffer("routed", most*p.hidden*p.act.Bytes())
	if err != nil {
		return err
	}
	out, err := p.buffer("routed outputs", most*p.hidden*p.act.Bytes())
	if err != nil {
		return err
	}
	lists, err := p.buffer("routes", 8*all)
	if err != nil {
		return err
	}
	data := make([]byte, 0, 8*all)
	for i := range rows {
		for _, r := range rows[i] {
			data = binary.LittleEndian.AppendUint32(data, uint32(r))
		}
		for _, w := range weights[i] {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(w))
		}
	}
	if err := p.device.Upload(lists, data); err != nil {
		return err
	}
	for i, f := range e.each {
		n := len(rows[i])
		if n == 0 {
			continue
		}
		blocks := cuda.Grid{X: n}
		if err := p.kernels.gather.Launch(blocks, cuda.Grid{X: threads}, in, x, lists, p.hidden); err != nil {
			return err
		}
		if err := f.rows(p, out, in, n, false); err != nil {
			return err
		}
		if err := p.kernels.scatter.Launch(blocks, cuda.Grid{X: threads}, to, out, lists, lists.Plus(4*n), p.hidden); err != nil {
			return err
		}
		lists = lists.Plus(8 * n)
	}
	return nil
}

// route returns the rows that each expert computes, and the weights of its outputs.
func (e *experts) route(p *pass, x cuda.Address) (rows [][]int32, weights [][]float32, err error) {
	r, n := e.Routing, len(e.each)
	logits, err := p.rowsBuffer("routing", n)
	if err != nil {
		return nil, nil, err
	}
	choices, err := p.buffer("choices", 8*p.rows*r.Used)
	if err != nil {
		return nil, nil, err
	}
	if err := p.apply(e.router, logits, x, p.rows, e.router.inputs, n, p.act, false); err != nil {
		return nil, nil, err
	}
	factors := choices.Plus(4 * p.rows * r.Used)
	if err := p.kernels.route.Launch(cuda.Grid{X: p.rows}, cuda.Grid{X: 32}, choices, factors, logits, e.correction, n, r.Used,
		number(r.Sigmoid), number(r.Normalize), float32(r.Scale), r.Groups, r.GroupsUsed, r.Best); err != nil {
		return nil, nil, err
	}
	data := make([]byte, 8*p.rows*r.Used)
	if err := p.device.Download(data, choices); err != nil {
		return nil, nil, err
	}
	rows, weights = make([][]int32, n), make([][]float32, n)
	for i := range p.rows * r.Used {
		expert := int32(binary.LittleEndian.Uint32(data[4*i:]))
		if expert < 0 || int(expert) >= n {
			return nil, nil, fmt.Errorf("tensor %q: its outputs are not finite, so no expert was chosen", e.Router.Weight)
		}
		weight := math.Float32frombits(binary.LittleEndian.Uint32(data[4*(p.rows*r.Used+i):]))
		rows[expert] = append(rows[expert], int32(i/r.Used))
		weights[expert] = append(weights[expert], weight)
	}
	return rows, weights, nil
}

func align4(n int) int { return (n + 3) / 4 * 4 }

func (e *experts) multiply(*pass, cuda.Address, cuda.Address) error { return errCaptured }
