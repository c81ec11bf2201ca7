package program

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
	"github.com/lowtoggle/lowtoggle/weights"
)

// joint computes a layer whose values are chosen together and not row by row. Prepare computes the result, and Release
// frees it. A choice of each value alone keeps no result.
type joint struct {
	hessians                Hessians // nil where no tokens are known
	zeroInputs, zeroOutputs []int
	mask                    Op // makes the zeros that stay; nil where there are none
	chooser                 func(n int, scale float64) (rounding.Chooser, error)
	damp                    float64
	isAlone                 bool   // see chosenAlone
	zeroed                  []bool // rows of the result that become zero, if isAlone; nil: none

	results *Results
	key     resultKey

	mu    sync.Mutex
	data  []byte
	alone rounding.Chooser // instead of data, if isAlone; nil before Prepare
	layer *Layer           // loaded in advance, to try many steps on one layer; nil: loaded when needed
}

// newJoint collects what the operations contribute to a joint choice; nil if none asks for one.
func newJoint(p *Program, ops []Operation, h Hessians) (*joint, error) {
	j := &joint{hessians: h}
	var asked, affine, damped, zeroing, not string // passes, and why one of them is not joint
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
		return bad("leave it out, or %s, which computes values one by one", affine)
	case len(masks) > 1:
		return bad("leave out one of %s, which make zeros that are to stay", strings.Join(masks, " and "))
	case len(choosers) > 1:
		return bad("leave out all but one of %s, which choose its values", strings.Join(choosers, ", "))
	case not != "":
		return bad("%s; leave one of the two out", not)
	case damped != "" && h == nil:
		return nil, fmt.Errorf("%s weighs errors by the layer's inputs: %w", damped, ErrNoHessians)
	case len(j.zeroInputs) > 0 && damped == "":
		return bad("no pass hands on the errors of the inputs that %s zeroes", zeroing)
	}
	if j.isAlone = j.chosenAlone(p); j.isAlone && len(j.zeroOutputs) > 0 {
		rows, _ := p.Row.Places(p.Rows, j.zeroOutputs) // checked when it was compiled
		j.zeroed = make([]bool, p.Rows)
		for _, n := range rows {
			j.zeroed[n] = true
		}
	}
	return j, nil
}

// HoldsResult reports whether Prepare computes the whole result, which is as large as the weight. It needs Release.
func (p *Program) HoldsResult() bool { return p.joint != nil && !p.joint.isAlone }

// Use gives the program's joint choice a layer that is loaded already, to try many steps on one layer.
func (p *Program) Use(l *Layer) {
	if p.joint != nil {
		p.joint.layer = l
	}
}

// Prepare computes a joint choice with the given number of goroutines, unless it is computed already. It does nothing
// for other programs. The errors are those of reading the source or a Hessian, and ctx's.
func (p *Program) Prepare(ctx context.Context, workers int) error {
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
		return fmt.Errorf("%s: tensor %q: %w", p.File(), p.Source.Name, err)
	}
	return nil
}

// Remember stores the result of Prepare in the compiler's [Results], if there is room.
func (p *Program) Remember() {
	if p.HoldsResult() {
		p.joint.mu.Lock()
		defer p.joint.mu.Unlock()
		p.joint.results.put(p.joint.key, p.joint.data)
	}
}

// Release frees the result of Prepare.
func (p *Program) Release() {
	if p.joint != nil {
		p.joint.mu.Lock()
		p.joint.data = nil
		p.joint.mu.Unlock()
	}
}

// choose chooses all values of the layer and returns them as the result's bytes.
func (p *Program) choose(ctx context.Context, workers int) (data []byte, err error) {
	l := p.joint.layer
	if l == nil {
		if l, err = p.Fitted(ctx, p.joint.hessians, workers); err != nil {
			return nil, err
		}
	}
	q, err := p.joint.values(ctx, p, l, workers)
	if err != nil {
		return nil, err
	}
	if p.OutAxis == 1 {
		q = transposed(q)
	}
	data = make([]byte, p.Rows*p.RowBytes())
	rest := q.Data
	for _, r := range l.bands.of(p.Rows) {
		band := rest[:(r[1]-r[0])*p.Cols]
		parallel.Do(r[1]-r[0], workers, func(i int) {
			p.Format.Encode(data[(r[0]+i)*p.RowBytes():][:p.RowBytes()], band[i*p.Cols:][:p.Cols])
		})
		rest = rest[len(band):]
		if l.finite {
			continue
		}
		if err := p.keepNonFinite(ctx, data, r[0], r[1]); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// keepNonFinite gives values of rows [first, end) that are not finite their own bits back.
func (p *Program) keepNonFinite(ctx context.Context, data []byte, first, end int) error {
	return p.Lossless().EachBlock(ctx, first, end, func(b Block) {
		for i := range b.Rows * b.Cols {
			if v := b.Format.Elem(b.Data, i); !b.Format.Finite(v) {
				b.Format.SetElem(data, b.First*b.Cols+i, v)
			}
		}
	})
}

// values returns the layer's values [N, K] as the operations choose them.
func (j *joint) values(ctx context.Context, p *Program, l *Layer, workers int) (q sgemm.Matrix, err error) {
	n, k := l.W.Rows, l.W.Cols
	f := rounding.Flat(k)
	zero := 0
	switch {
	case j.damp > 0:
		in, _ := p.InputAxis()
		first, _ := in.Places(k, j.zeroInputs) // checked when it was compiled
		zero = len(first)
		if f, err = l.dampedFactor(ctx, j.damp, first, workers); err != nil {
			return q, err
		}
	case l.H.Rows > 0:
		f = rounding.Uncompensated(l.H)
	}
	out, all := p.OutputAxis()
	c, err := j.choices(ctx, p, rounding.Loss{Signal: l.Signal}.Scale(n*k))
	if err != nil {
		return q, err
	}
	if l.bands != nil {
		c = banded{c, l.bands, all}
	}
	if q, err = rounding.Round(ctx, l.W, f, c, rounding.Options{Workers: workers, Zero: zero}); err != nil {
		return q, err
	}
	rows, _ := out.Places(all, j.zeroOutputs)
	for _, r := range rows {
		if i := l.bands.find(r); i >= 0 {
			clear(q.Row(i))
		}
	}
	return q, nil
}

func (j *joint) choices(ctx context.Context, p *Program, scale float64) (c rounding.Chooser, err error) {
	if c, err = j.chooserOf(p, scale); err != nil || j.mask == nil {
		return c, err
	}
	keep, err := p.kept(ctx, j.mask)
	return rounding.Sparse{Chooser: c, Keep: keep}, err
}

// kept reports which elements [N, K] the mask leaves, outputs as rows.
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
