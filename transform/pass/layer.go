package pass

import (
	"context"
	"errors"
	"math"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Cost predicts the energy of products. It is called from several goroutines. [cost.Calibration] implements it.
type Cost interface {
	// Energy returns the energy of a product relative to random data of the same scale. w is a sample of the
	// product's weights. Energy does not keep the sample.
	Energy(ctx context.Context, w cost.Weights, role cost.Role, l cost.Workload) (cost.Estimate, error)
	// Lags returns the distances along an axis of stored weights at which differing bits cost energy.
	Lags(ctx context.Context, w cost.Weights, axis int, role cost.Role, l cost.Workload) ([]cost.Lag, error)
}

// Context holds the inputs that all passes of a plan share.
type Context struct {
	Workload cost.Workload
	Role     cost.Role
	Budget   Budget
	Cost     Cost
	Hessians program.Hessians // nil without tokens
	Choices  []Choice         // requested passes, in the table's order
	Workers  int
	// SampleFrom is a number of weights. Candidates for a layer with at least as many weights are compared on a
	// sample of its rows; 0: always on all rows.
	SampleFrom int
}

// Layer is one linear layer for which the lossy passes choose. Only one goroutine may use it.
type Layer struct {
	*Context
	Weight *quant.Weight
	// Format is the format of the weight's values. For a quantised weight, it is the format of the elements that
	// tensor cores read.
	Format weights.Format
	// Freed is the number of other layers' weights that become zero if one input of this layer becomes zero.
	Freed float64

	fixed    []*plan.Step // compensated steps, decided before
	compiler *program.Compiler
	base     *program.Program

	rms   []float64
	rates *rounding.Rates

	keep         bool          // store fitted and held once they are loaded
	bands        program.Bands // rows of the loaded layers; nil: all rows
	fitted, held *program.Layer
}

// NewLayer compiles a layer with the steps that are already decided.
func NewLayer(ctx context.Context, c *Context, compiler *program.Compiler, w *quant.Weight, fixed []*plan.Step) (*Layer, error) {
	if c == nil || compiler == nil || w == nil {
		return nil, errors.New("a layer needs a context, a compiler and a weight")
	}
	d := w.DType
	if w.Quantised != nil {
		d = w.Quantised.Operand()
	}
	f, _ := d.Format()
	l := &Layer{Context: c, Weight: w, Format: f, fixed: fixed, compiler: compiler}
	var err error
	l.base, err = l.Program(ctx)
	return l, err
}

// Base returns the layer's program before the lossy passes.
func (l *Layer) Base() *program.Program { return l.base }

// Rows, Cols and OutAxis describe the stored matrix; see [program.Program].
func (l *Layer) Rows() int    { return l.base.Rows }
func (l *Layer) Cols() int    { return l.base.Cols }
func (l *Layer) OutAxis() int { return l.base.OutAxis }

// Outputs returns the number of the layer's outputs.
func (l *Layer) Outputs() int {
	_, n := l.base.OutputAxis()
	return n
}

// Program compiles the decided steps and the steps in more.
func (l *Layer) Program(ctx context.Context, more ...*plan.Step) (*program.Program, error) {
	if len(more) == 0 && l.base != nil {
		return l.base, nil
	}
	p, err := l.compiler.Program(ctx, l.Weight, append(append([]*plan.Step{}, l.fixed...), more...))
	if err == nil {
		p.Use(l.fitted)
	}
	return p, err
}

// Guard runs work that reads the layer's weight; see [weights.GuardOf].
func (l *Layer) Guard(work func() error) error {
	if l == nil || l.Weight == nil || l.base == nil {
		return errors.New("no layer was given")
	}
	if l.base.Referenced() { // the program also reads the reference model's weight
		return weights.Guard(l.base.File(), work)
	}
	return guard(l.Weight, work)
}

// guard runs work that reads a weight.
func guard(w *quant.Weight, work func() error) error {
	if w.Quantised != nil && w.Quantised.Make != nil { // the quantised weight is made from other tensors
		return weights.Guard(w.Name, work)
	}
	var data [][]byte
	for _, t := range w.Parts {
		data = append(data, t.Data)
	}
	return weights.GuardOf(w.Parts[0].File, data, work)
}

// Programs compiles several combinations of steps. Equal combinations are compiled once.
func (l *Layer) Programs(ctx context.Context, combinations [][]*plan.Step) ([]*program.Program, error) {
	list := make([]*program.Program, len(combinations))
	for i, steps := range combinations {
		var err error
		if list[i], err = l.Program(ctx, steps...); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Decided keeps a program of the layer, so that applying the plan need not compile it again.
func (l *Layer) Decided(p *program.Program) { l.compiler.Keep(p) }

// EachValues calls fn with the layer's values before the lossy passes, in blocks of rows.
func (l *Layer) EachValues(ctx context.Context, fn func(b program.Block, values []float32)) error {
	return l.base.EachValues(ctx, 0, l.base.Rows, fn)
}

// OutputRMS returns the root mean square of each output's weights before the lossy passes, in the result's order.
// Values that are not finite do not count.
func (l *Layer) OutputRMS(ctx context.Context) ([]float64, error) {
	if l.rms != nil {
		return l.rms, nil
	}
	sum, n := make([]float64, l.Outputs()), make([]float64, l.Outputs())
	p := *l.base
	p.Unit = max(p.Unit, side)
	err := p.EachValues(ctx, 0, p.Rows, func(b program.Block, v []float32) {
		i := 0
		for ; p.OutAxis == 0 && i+side <= b.Rows; i += side {
			sumSquares(v[i*b.Cols:(i+side)*b.Cols], sum[b.First+i:][:side], n[b.First+i:][:side])
		}
		for ; i < b.Rows; i++ {
			out, step := b.First+i, 0
			if p.OutAxis == 1 {
				out, step = 0, 1
			}
			for _, x := range v[i*b.Cols : (i+1)*b.Cols] {
				if x-x == 0 {
					sum[out] += float64(float64(x) * float64(x)) // the conversion prevents fusing, for equal results on all machines
					n[out]++
				}
				out += step
			}
		}
	})
	for i := range sum {
		sum[i] = math.Sqrt(sum[i] / max(1, n[i]))
	}
	if err == nil {
		l.rms = sum
	}
	return sum, err
}

// sumSquares sets the sum of the squares of the finite values of each row, and the number of these values.
func sumSquares(v []float32, sum, n []float64) {
	cols := len(v) / side
	a, b, c, d := v[:cols], v[cols:][:cols], v[2*cols:][:cols], v[3*cols:][:cols]
	var s0, s1, s2, s3 float64
	left := [side]int{}
	for k := range a {
		x := [side]float64{float64(a[k]), float64(b[k]), float64(c[k]), float64(d[k])}
		if (x[0]-x[0])+(x[1]-x[1])+(x[2]-x[2])+(x[3]-x[3]) != 0 {
			for j, y := range x {
				if y-y != 0 {
					x[j] = 0
					left[j]++
				}
			}
		}
		// The conversions prevent fusing, for equal results on all machines.
		s0 += float64(x[0] * x[0])
		s1 += float64(x[1] * x[1])
		s2 += float64(x[2] * x[2])
		s3 += float64(x[3] * x[3])
	}
	sum[0], sum[1], sum[2], sum[3] = s0, s1, s2, s3
	for j := range n {
		n[j] = float64(cols - left[j])
	}
}

// Fitted returns the layer with the Hessian of the tokens that values are fitted to.
func (l *Layer) Fitted(ctx context.Context) (*program.Layer, error) {
	return l.loaded(&l.fitted, func() (*program.Layer, error) { return l.base.FittedOf(ctx, l.bands, l.Hessians, 1) })
}

// Held returns the layer with the Hessian of held-out tokens, which measures the loss of values.
func (l *Layer) Held(ctx context.Context) (*program.Layer, error) {
	return l.loaded(&l.held, func() (*program.Layer, error) { return l.base.HeldOf(ctx, l.bands, l.Hessians, 1) })
}

// Keep loads the layer's matrices once for many trials. The returned function frees them.
func (l *Layer) Keep(ctx context.Context) (free func(), err error) {
	l.keep = true
	if _, err := l.Fitted(ctx); err != nil {
		l.free()
		return nil, err
	}
	return l.free, nil
}

func (l *Layer) free() { l.keep, l.bands, l.fitted, l.held = false, nil, nil, nil }

func (l *Layer) loaded(known **program.Layer, load func() (*program.Layer, error)) (*program.Layer, error) {
	if *known != nil {
		return *known, nil
	}
	m, err := load()
	if err == nil && l.keep {
		*known = m
	}
	return m, err
}
