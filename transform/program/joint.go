package program

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
	"github.com/lowtoggle/lowtoggle/weights"
)

// joint computes a layer whose values are chosen together and not row by row. Prepare computes the result, and
// Release frees it. If each value is chosen alone, no result is stored.
type joint struct {
	hessians                Hessians // nil without tokens
	zeroInputs, zeroOutputs []int
	mask                    Op // marks the zeros that must stay; nil: none
	chooser                 func(n int, scale float64) (rounding.Chooser, error)
	damp                    float64
	isAlone                 bool   // each value is chosen alone; see chosenAlone
	zeroed                  []bool // with isAlone: rows of the result that become zero; nil: none

	results *Results
	key     resultKey

	mu    sync.Mutex
	data  []byte           // rows of the result
	bands Bands            // rows in data; nil: all rows
	alone rounding.Chooser // with isAlone, replaces data; nil before Prepare
	layer *Layer           // loaded before, for many steps on one layer; nil: loaded when needed
}

// newJoint merges the operations' contributions to a joint choice; nil if no operation is joint.
func newJoint(p *Program, ops []Operation, h Hessians) (*joint, error) {
	j := &joint{hessians: h}
	var asked, affine, damped, zeroing, not string // names of passes; not is the reason why one of them is not joint
	var masks, choosers []string
	for _, o := range ops {
		if o.Joint {
			asked = o.pass
		}
		if o.Affine != nil {
			affine = o.pass
		}
		if o.Mask {
			masks = append(masks, o.pass)
		}
		if o.Apply != nil && !o.Mask && o.Chooser == nil && o.NotJoint == "" {
			not = o.pass + " rewrites values one by one"
		}
		if o.Mask && j.mask == nil {
			j.mask = o.Apply
		}
		if o.Chooser != nil {
			j.chooser = o.Chooser
			choosers = append(choosers, o.pass)
		}
		if o.NotJoint != "" {
			not = o.pass + ": " + o.NotJoint
		}
		if o.Damp > 0 {
			j.damp, damped = o.Damp, o.pass
		}
		if o.ZeroInputs != nil || o.ZeroOutputs != nil {
			j.zeroInputs, j.zeroOutputs, zeroing = o.ZeroInputs, o.ZeroOutputs, o.pass
		}
	}
	bad := func(format string, args ...any) (*joint, error) {
		return nil, fmt.Errorf("%s rounds the layer jointly: "+format, append([]any{asked}, args...)...)
	}
	switch {
	case asked == "":
		return nil, nil
	case affine != "":
		return bad("leave out %s, or leave out %s, which computes values one by one", asked, affine)
	case len(masks) > 1:
		return bad("only one pass may set zeros that must stay: leave out all but one of %s", strings.Join(masks, ", "))
	case len(choosers) > 1:
		return bad("leave out all but one of %s, which choose the layer's values", strings.Join(choosers, ", "))
	case not != "":
		return bad("%s; leave out one of these two passes", not)
	case damped != "" && h == nil:
		return nil, fmt.Errorf("%s needs the layer's inputs: %w", damped, ErrNoHessians)
	case len(j.zeroInputs) > 0 && damped == "":
		return bad("no pass compensates the errors of the inputs that %s zeroes: add such a pass, or leave out %[2]s", zeroing)
	}
	if j.isAlone = j.chosenAlone(p); j.isAlone && len(j.zeroOutputs) > 0 {
		rows, _ := p.Row.Places(p.Rows, j.zeroOutputs) // the compiler has checked the positions
		j.zeroed = make([]bool, p.Rows)
		for _, n := range rows {
			j.zeroed[n] = true
		}
	}
	return j, nil
}

// HoldsResult reports whether Prepare computes and stores the whole result, which is as large as the weight. Release
// frees it.
func (p *Program) HoldsResult() bool {
	return p.joint != nil && !p.joint.isAlone || p.coded != nil && !p.coded.alone()
}

// OnDevice reports whether a device computes the whole result in Prepare.
func (p *Program) OnDevice() bool {
	if p.joint == nil || p.joint.isAlone || p.OutAxis != 0 {
		return false
	}
	d, ok := p.joint.hessians.(DeviceHessians)
	return ok && d.Device() != nil
}

// Use sets the loaded layer of the program's joint choice, for trying many steps on one layer.
func (p *Program) Use(l *Layer) {
	if p.joint != nil {
		p.joint.layer = l
	}
	if p.coded != nil {
		p.coded.layer = l
	}
}

// Prepare computes a joint choice with the given number of goroutines, unless it is already computed. For other
// programs it does nothing. Errors come from reading the source or a Hessian, and from ctx.
func (p *Program) Prepare(ctx context.Context, workers int) error {
	if p.coded != nil {
		return p.prepareCoded(ctx, workers)
	}
	j := p.joint
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.data != nil || j.alone != nil {
		return nil
	}
	if j.isAlone {
		return p.prepareAlone(ctx)
	}
	if j.data = j.results.get(j.key); j.data != nil {
		return nil
	}
	err := weights.Guard(p.File(), func() (err error) {
		j.data, err = p.choose(ctx, workers)
		return err
	})
	if err != nil {
		j.data = nil
		return weights.TensorErrorf(p.File(), p.Source.Name, "%w", err)
	}
	return nil
}

// Remember stores the result of Prepare in the compiler's [Results], if there is room.
func (p *Program) Remember() {
	if p.coded == nil && p.HoldsResult() {
		p.joint.mu.Lock()
		defer p.joint.mu.Unlock()
		if p.joint.bands == nil {
			p.joint.results.put(p.Source.Name, p.joint.key, p.joint.data)
		}
	}
}

// Release frees the result of Prepare.
func (p *Program) Release() {
	if p.joint != nil {
		p.joint.mu.Lock()
		p.joint.data = nil
		p.joint.mu.Unlock()
	}
	if p.coded != nil {
		p.coded.release()
	}
}

// choose chooses all values of the layer, and returns the result's bytes.
func (p *Program) choose(ctx context.Context, workers int) (data []byte, err error) {
	l := p.joint.layer
	if l == nil {
		if l, err = p.Fitted(ctx, p.joint.hessians, workers); err != nil {
			return nil, err
		}
	}
	c, err := p.joint.choosing(ctx, p, l)
	if err != nil {
		return nil, err
	}
	if t, ok := c.table(l); ok {
		all, err := c.onDevice(ctx, l, []rounding.Table{t}, workers)
		if err == nil {
			return p.received(l, all[0]), nil
		}
		if !errors.Is(err, rounding.ErrNoFeedback) {
			return nil, err
		}
	}
	q, err := c.values(ctx, l, workers)
	if err != nil {
		return nil, err
	}
	return p.stored(ctx, l, q, workers)
}

// received returns the result's bytes for values that a device chose.
func (p *Program) received(l *Layer, data []byte) []byte {
	p.joint.bands = l.bands
	size := p.RowBytes()
	rows, _ := p.joint.outputPlaces(p)
	for _, r := range rows {
		i := l.bands.find(r)
		if i < 0 {
			continue
		}
		row := data[i*size:][:size]
		for k := range p.Cols {
			if p.Format.Finite(p.Format.Elem(row, k)) {
				p.Format.SetElem(row, k, 0)
			}
		}
	}
	return data
}

// stored encodes the values q [N, K] of the layer's rows as the result's bytes.
func (p *Program) stored(ctx context.Context, l *Layer, q sgemm.Matrix, workers int) (data []byte, err error) {
	rows, _ := p.joint.outputPlaces(p)
	for _, r := range rows {
		if i := l.bands.find(r); i >= 0 {
			clear(q.Row(i))
		}
	}
	if p.OutAxis == 1 {
		q = transposed(q)
	}
	p.joint.bands = l.bands
	data = make([]byte, q.Rows*p.RowBytes())
	parallel.Do(q.Rows, workers, func(i int) { p.Format.Encode(data[i*p.RowBytes():][:p.RowBytes()], q.Row(i)) })
	if l.finite {
		return data, nil
	}
	for _, r := range l.bands.of(p.Rows) {
		if err := p.keepNonFinite(ctx, data, r[0], r[1]); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// keepNonFinite restores the bits of values that are not finite in rows [first, end).
func (p *Program) keepNonFinite(ctx context.Context, data []byte, first, end int) error {
	return p.Lossless().EachBlock(ctx, first, end, func(b Block) {
		place := p.joint.bands.find(b.First)
		for i := range b.Rows * b.Cols {
			if v := b.Format.Elem(b.Data, i); !b.Format.Finite(v) {
				b.Format.SetElem(data, place*b.Cols+i, v)
			}
		}
	})
}

// outputPlaces returns the rows of the result that become zero. all is the number of outputs.
func (j *joint) outputPlaces(p *Program) (rows []int, all int) {
	out, all := p.OutputAxis()
	rows, _ = out.Places(all, j.zeroOutputs) // the compiler has checked the positions
	return rows, all
}

// choosing holds the settings for choosing a layer's values.
type choosing struct {
	chooser rounding.Chooser
	damp    float64 // 0: no error feedback
	first   []int   // columns that become zero
}

func (j *joint) choosing(ctx context.Context, p *Program, l *Layer) (c choosing, err error) {
	if c.damp = j.damp; c.damp > 0 {
		in, k := p.InputAxis()
		c.first, _ = in.Places(k, j.zeroInputs) // the compiler has checked the positions
	}
	_, all := j.outputPlaces(p)
	c.chooser, err = j.choices(ctx, p, rounding.Loss{Signal: l.Signal}.Scale(l.Rows*l.Cols))
	if l.bands != nil {
		c.chooser = banded{c.chooser, l.bands, all}
	}
	return c, err
}

// table returns the chooser's table for a device. ok is false if the CPU chooses.
func (c choosing) table(l *Layer) (t rounding.Table, ok bool) {
	if l.on == nil || c.damp == 0 {
		return t, false
	}
	if tabulated, ok := c.chooser.(rounding.Tabulated); ok {
		return tabulated.Table(l.Rows, l.Cols)
	}
	return t, false
}

// onDevice returns the layer's values, as stored, for each of several tables.
func (c choosing) onDevice(ctx context.Context, l *Layer, tables []rounding.Table, workers int) ([][]byte, error) {
	return l.on.Round(ctx, l.stored, rounding.FactorOptions{Damp: c.damp, First: c.first}, tables, rounding.Options{Workers: workers, Zero: len(c.first)})
}

// values returns the layer's values [N, K], computed on the CPU.
func (c choosing) values(ctx context.Context, l *Layer, workers int) (q sgemm.Matrix, err error) {
	f := rounding.Flat(l.Cols)
	switch {
	case c.damp > 0:
		f, err = l.dampedFactor(ctx, c.damp, c.first, workers)
	case l.known:
		var diagonal []float32
		if diagonal, err = l.diagonal(ctx); err == nil {
			f = rounding.Uncompensated(diagonal)
		}
	}
	if err != nil {
		return q, err
	}
	return rounding.Round(ctx, l.Weights(), f, c.chooser, rounding.Options{Workers: workers, Zero: len(c.first)})
}

func (j *joint) choices(ctx context.Context, p *Program, scale float64) (c rounding.Chooser, err error) {
	if c, err = j.chooserOf(p, scale); err != nil || j.mask == nil {
		return c, err
	}
	keep, err := p.kept(ctx, j.mask)
	return rounding.Sparse{Chooser: c, Keep: keep}, err
}

// kept reports which elements [N, K] the mask keeps, with outputs as rows.
func (p *Program) kept(ctx context.Context, mask Op) ([]bool, error) {
	masked := p.Lossless()
	masked.ops = []Op{mask}
	keep := make([]bool, p.Rows*p.Cols)
	n, k := p.Rows, p.Cols
	if p.OutAxis == 1 {
		n, k = k, n
	}
	err := masked.EachValues(ctx, 0, p.Rows, func(b Block, v []float32) {
		for i, x := range v {
			r, c := b.First+i/b.Cols, i%b.Cols
			if p.OutAxis == 1 {
				r, c = c, r
			}
			keep[r*k+c] = x != 0
		}
	})
	return keep, err
}
