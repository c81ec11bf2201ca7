package runner

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/decoder"
)

// experts are routed experts on the card. The host reads the router's choices and gathers the tokens of each expert. A
// graph cannot wait for the host, so a captured step repeats the choices of its first run; see routes.
type experts struct {
	*decoder.Experts
	router     *linear
	correction cuda.Address // 0: no correction
	each       []*ffn
}

// routes are the routers' choices in a captured step, layer by layer. The first run makes the choices. All later runs
// of the step, and all steps that share its buffers, use them again.
type routes struct {
	memory *cuda.Memory
	layers []route
	next   int // next routed layer of the running step
}

// route is one router's choice. It holds the rows of each expert, and lists on the card: each expert's rows, followed
// by the weights of its outputs.
type route struct {
	counts []int
	lists  cuda.Address
}

// most returns the largest number of rows of any expert.
func (r route) most() int { return slices.Max(r.counts) }

func (l *loader) experts(ctx context.Context, e *decoder.Experts) (*experts, error) {
	if r := e.Routing; len(e.Each) > maxExperts || r.Groups > maxGroups || r.Groups > 0 && len(e.Each)/r.Groups > maxInGroup {
		return nil, fmt.Errorf("tensor %q: %w: it routes to %d experts in %d groups, but at most %d experts in %d groups of up to %d are supported", e.Router.Weight, cuda.ErrNoKernel, len(e.Each), r.Groups, maxExperts, maxGroups, maxInGroup)
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
	choices, err := e.choose(p, x)
	if err != nil {
		return err
	}
	r, err := e.route(p, choices)
	if err != nil {
		return err
	}
	in, out, err := e.buffers(p, r)
	if err != nil {
		return err
	}
	lists := r.lists
	for i, f := range e.each {
		n := r.counts[i]
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

// buffers returns buffers for the inputs and outputs of one expert.
func (e *experts) buffers(p *pass, r route) (in, out cuda.Address, err error) {
	bytes := r.most() * p.hidden * p.act.Bytes()
	if in, err = p.buffer("routed", bytes); err != nil {
		return 0, 0, err
	}
	out, err = p.buffer("routed outputs", bytes)
	return in, out, err
}

// logits queues the router's product.
func (e *experts) logits(p *pass, x cuda.Address) (cuda.Address, error) {
	n := len(e.each)
	logits, err := p.rowsBuffer("routing", n)
	if err != nil {
		return 0, err
	}
	return logits, p.apply(e.router, logits, x, p.rows, e.router.inputs, n, p.act, false)
}

// choose queues the router and returns the address of its choices: the experts of each row, followed by their weights.
func (e *experts) choose(p *pass, x cuda.Address) (cuda.Address, error) {
	r := e.Routing
	choices, err := p.buffer("choices", 8*p.rows*r.Used)
	if err != nil {
		return 0, err
	}
	logits, err := e.logits(p, x)
	if err != nil {
		return 0, err
	}
	factors := choices.Plus(4 * p.rows * r.Used)
	return choices, p.kernels.route.Launch(cuda.Grid{X: p.rows}, cuda.Grid{X: 32}, choices, factors, logits, e.correction, len(e.each), r.Used,
		number(r.Sigmoid), number(r.Normalize), float32(r.Scale), r.Groups, r.GroupsUsed, r.Best)
}

// route returns the lists of the experts' rows. In a captured step they are the lists of the first run.
func (e *experts) route(p *pass, choices cuda.Address) (route, error) {
	if p.routes == nil {
		return e.read(p, choices, func(bytes int) (cuda.Address, error) { return p.buffer("routes", bytes) })
	}
	layer := p.routes.next
	p.routes.next++
	if layer == len(p.routes.layers) {
		r, err := e.read(p, choices, p.routes.memory.Alloc)
		if err != nil {
			return r, err
		}
		p.routes.layers = append(p.routes.layers, r)
	}
	return p.routes.layers[layer], nil
}

// read waits for the router's choices, and uploads the lists.
func (e *experts) read(p *pass, choices cuda.Address, alloc func(bytes int) (cuda.Address, error)) (r route, err error) {
	used, n := e.Routing.Used, len(e.each)
	data := make([]byte, 8*p.rows*used)
	if err := p.device.Download(data, choices); err != nil {
		return r, err
	}
	rows, weights := make([][]byte, n), make([][]byte, n)
	r.counts = make([]int, n)
	for i := range p.rows * used {
		expert := int32(binary.LittleEndian.Uint32(data[4*i:]))
		if expert < 0 || int(expert) >= n {
			return r, fmt.Errorf("tensor %q: its outputs are not finite, so no expert can be chosen: look for NaN, infinite or very large weights in this tensor and in earlier layers", e.Router.Weight)
		}
		rows[expert] = binary.LittleEndian.AppendUint32(rows[expert], uint32(i/used))
		weights[expert] = append(weights[expert], data[4*(p.rows*used+i):][:4]...)
		r.counts[expert]++
	}
	var lists []byte
	for i := range rows {
		lists = append(append(lists, rows[i]...), weights[i]...)
	}
	if r.lists, err = alloc(len(lists)); err != nil {
		return r, err
	}
	return r, p.device.Upload(r.lists, lists)
}

// multiply queues the products of the router and of the experts. Each expert has as many rows as in the whole step.
func (e *experts) multiply(p *pass, to, x cuda.Address) error {
	if _, err := e.logits(p, x); err != nil {
		return err
	}
	r := p.routes.layers[p.routes.next]
	p.routes.next++
	in, out, err := e.buffers(p, r)
	if err != nil {
		return err
	}
	for i, f := range e.each {
		if n := r.counts[i]; n > 0 {
			if err := f.multiplyRows(p, out, in, n); err != nil {
				return err
			}
		}
	}
	return nil
}

func align4(n int) int { return (n + 3) / 4 * 4 }
