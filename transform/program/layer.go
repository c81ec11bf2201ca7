package program

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Hessians are the calibration statistics of a model's linear layers. Several goroutines may call them at a time.
type Hessians interface {
	// Key identifies the model and the tokens.
	Key() string
	// Has reports whether the tensor is a layer with a known Hessian.
	Has(tensor string) bool
	// Fit returns the Hessian [K, K], XᵀX/tokens of a linear layer's inputs x[tokens, K]. Both axes are in the
	// source's order. The caller may change the matrix.
	Fit(ctx context.Context, tensor string) (sgemm.Matrix, error)
	// Held returns the Hessian [K, K] of held-out tokens. No value is fitted to these tokens, so they measure the
	// error on other texts.
	Held(ctx context.Context, tensor string) (sgemm.Matrix, error)
}

// DeviceHessians are Hessians with an optional device for rounding.
type DeviceHessians interface {
	Hessians
	// Device returns the device that rounds; nil: the CPU rounds.
	Device() rounding.Device
	// Input names a layer's input. Layers with the same input have the same Hessians.
	Input(tensor string) string
	// Triangle returns the upper triangle of Fit or, with held, of Held.
	Triangle(ctx context.Context, tensor string, held bool) (*rounding.Triangle, error)
}

// Layer holds a linear layer's weights before its operations, outputs as rows.
type Layer struct {
	Rows, Cols int // outputs and inputs
	// Signal is the mean square of the outputs, summed over the outputs. The inputs have the Hessian's statistics, or
	// without a Hessian, are independent with unit variance. For a layer from HeldOf, Signal may be unknown until
	// LostOf is called.
	Signal float64

	bands  Bands                  // rows of the result that are loaded; nil: all rows
	from   []int                  // source position of each input
	finite bool                   // all weights are finite; false on a device
	known  bool                   // the Hessian is known
	on     rounding.DeviceHessian // nil: the CPU rounds
	stored rounding.Values        // weights on a device

	unmeasured bool // Signal is unknown until LostOf

	mu     sync.Mutex
	w      sgemm.Matrix                                // weights; no rows until needed
	read   func(context.Context) (sgemm.Matrix, error) // reads the Hessian
	h      sgemm.Matrix                                // Hessian; no rows until it is read
	damp   float64                                     // damping of factor
	factor *rounding.Factor
	count  *Counters // may be nil
}

// Positions returns the source positions of inputs, given by their places in the layer.
func (l *Layer) Positions(inputs []int) []int {
	out := make([]int, len(inputs))
	for i, k := range inputs {
		out[i] = l.from[k]
	}
	return out
}

// layerOf loads the program's layer with the outputs of some bands. h may be nil. held selects [Hessians.Held]. A
// program that uses the layer computes only the rows of these bands.
func (p *Program) layerOf(ctx context.Context, bands Bands, h Hessians, held bool, workers int) (*Layer, error) {
	axis, k := p.InputAxis()
	_, n := p.OutputAxis()
	if bands != nil {
		n = bands.rows()
	}
	l := &Layer{Rows: n, Cols: k, bands: bands, from: make([]int, k), count: p.count}
	for i := range l.from {
		l.from[i] = at(axis.Gather, i, i)
	}
	if h != nil {
		of := h.Fit
		if held {
			of = h.Held
		}
		l.known = true
		l.read = func(ctx context.Context) (sgemm.Matrix, error) { return p.hessian(ctx, of) }
		l.on = p.onDevice(h, held)
	}
	var err error
	if l.on != nil {
		l.stored = rounding.Values{Rows: n, Cols: k, Format: p.Format}
		if l.stored.Data, err = p.Lossless().StoredOf(ctx, bands, workers); err != nil {
			return nil, err
		}
	} else {
		if l.w, err = p.Lossless().outputsOf(ctx, bands, workers); err != nil {
			return nil, err
		}
		l.finite = allFinite(l.w, workers)
		if _, err := l.Hessian(ctx); err != nil {
			return nil, err
		}
	}
	if l.on != nil && held {
		l.unmeasured = true // LostOf measures the signal together with the errors
		return l, nil
	}
	if bands != nil || h == nil || held || p.values != nil || p.affine != nil {
		l.Signal, err = l.signal(ctx, workers)
		return l, err
	}
	l.Signal, err = p.signals.of(p.Source, func() (float64, error) { return l.signal(ctx, workers) })
	return l, err
}

// signals caches the signals of whole layers on the fitting tokens. A nil *signals caches nothing.
type signals struct {
	mu  sync.Mutex
	all map[*quant.Weight]float64
}

func (s *signals) of(w *quant.Weight, compute func() (float64, error)) (float64, error) {
	if s == nil {
		return compute()
	}
	s.mu.Lock()
	v, ok := s.all[w]
	s.mu.Unlock()
	if ok {
		return v, nil
	}
	v, err := compute()
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all[w] = v
	}
	return v, err
}

// onDevice returns the layer's Hessian on the device of h; nil if the CPU rounds.
func (p *Program) onDevice(h Hessians, held bool) rounding.DeviceHessian {
	d, ok := h.(DeviceHessians)
	if !ok || d.Device() == nil || p.OutAxis != 0 || p.Coded() {
		return nil
	}
	axis, _ := p.InputAxis()
	load := func(ctx context.Context) (t *rounding.Triangle, err error) {
		err = weights.Guard(p.File(), func() error {
			if axis.IsIdentity() {
				if t, err = d.Triangle(ctx, p.Source.Name, held); err != nil {
					err = weights.TensorErrorf(p.File(), p.Source.Name, "the layer's Hessian: %w", err)
				}
				return err
			}
			of := d.Fit
			if held {
				of = d.Held
			}
			full, err := p.hessian(ctx, of)
			if err == nil {
				t = rounding.NewTriangle(full)
			}
			return err
		})
		return t, err
	}
	moved := sha256.Sum256(fmt.Append(nil, axis))
	return d.Device().Hessian(fmt.Sprintf("%s %s %v %x", d.Key(), d.Input(p.Source.Name), held, moved), load)
}

// Weights returns the weights [N, K].
func (l *Layer) Weights() sgemm.Matrix {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.w.Rows == 0 && l.stored.Data != nil {
		l.w = sgemm.Dense(l.Rows, l.Cols, nil)
		l.stored.Decode(l.w, 0)
	}
	return l.w
}

// Hessian returns the Hessian [K, K]; no rows if it is unknown.
func (l *Layer) Hessian(ctx context.Context) (h sgemm.Matrix, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hessian(ctx)
}

// hessian is Hessian with the lock held.
func (l *Layer) hessian(ctx context.Context) (h sgemm.Matrix, err error) {
	if l.known && l.h.Rows == 0 {
		if h, err = l.read(ctx); err != nil {
			return h, err
		}
		l.h = h
	}
	return l.h, nil
}

// diagonal returns the Hessian's diagonal.
func (l *Layer) diagonal(ctx context.Context) ([]float32, error) {
	if l.on != nil {
		return l.on.Diagonal(ctx)
	}
	h, err := l.Hessian(ctx)
	if err != nil {
		return nil, err
	}
	d := make([]float32, h.Rows)
	for i := range d {
		d[i] = h.Row(i)[i]
	}
	return d, nil
}

// allFinite reports whether no value is NaN or infinite.
func allFinite(w sgemm.Matrix, workers int) bool {
	var other atomic.Bool
	parallel.Do(w.Rows, workers, func(n int) {
		if slices.ContainsFunc(w.Row(n), func(v float32) bool { return v-v != 0 }) {
			other.Store(true)
		}
	})
	return !other.Load()
}

// Fitted loads the program's layer with the Hessian of the fitting tokens. h may be nil.
func (p *Program) Fitted(ctx context.Context, h Hessians, workers int) (*Layer, error) {
	return p.FittedOf(ctx, nil, h, workers)
}

// FittedOf is Fitted for the outputs of some bands.
func (p *Program) FittedOf(ctx context.Context, bands Bands, h Hessians, workers int) (*Layer, error) {
	return p.layerOf(ctx, bands, h, false, workers)
}

// HeldOf is FittedOf with the Hessian of held-out tokens.
func (p *Program) HeldOf(ctx context.Context, bands Bands, h Hessians, workers int) (*Layer, error) {
	return p.layerOf(ctx, bands, h, true, workers)
}

// hessian returns the Hessian of the inputs of a program's result, in the result's order. If the program multiplies
// columns by signs or powers of two, the inputs are divided by these factors.
func (p *Program) hessian(ctx context.Context, of func(context.Context, string) (sgemm.Matrix, error)) (sgemm.Matrix, error) {
	h, err := of(ctx, p.Source.Name)
	if err != nil {
		return h, weights.TensorErrorf(p.File(), p.Source.Name, "the layer's Hessian: %w", err)
	}
	axis, k := p.InputAxis()
	if h.Rows != k || h.Cols != k {
		return h, weights.TensorErrorf(p.File(), p.Source.Name, "the layer has %d inputs, and its Hessian is %d×%d", k, h.Rows, h.Cols)
	}
	if axis.IsIdentity() {
		return h, nil
	}
	factor := make([]float32, k) // by place in the result
	for i := range factor {
		from := at(axis.Gather, i, i)
		factor[i] = ldexp(1, -at(axis.Exp, from, 0))
		if at(axis.Flip, from, false) {
			factor[i] = -factor[i]
		}
	}
	moved := sgemm.Dense(k, k, nil)
	for i := range k {
		to, from := moved.Row(i), h.Row(at(axis.Gather, i, i))
		for j := range to {
			to[j] = from[at(axis.Gather, j, j)] * factor[i] * factor[j]
		}
	}
	return moved, nil
}

// dampedFactor returns the factor of the layer's damped Hessian. The last factor is cached, because a search tries
// many values at one damping.
func (l *Layer) dampedFactor(ctx context.Context, damp float64, first []int, workers int) (*rounding.Factor, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.factor != nil && l.damp == damp && len(first) == 0 {
		return l.factor, nil
	}
	h, err := l.hessian(ctx)
	if err != nil {
		return nil, err
	}
	f, err := rounding.NewFactor(ctx, h, rounding.FactorOptions{Damp: damp, First: first, Workers: workers})
	if err != nil {
		return nil, err
	}
	l.count.factor()
	if len(first) == 0 {
		l.damp, l.factor = damp, f
	}
	return f, nil
}

// lost returns the error of the layer's outputs if its weights are q[N, K]. It runs on the CPU.
func (l *Layer) lost(ctx context.Context, q sgemm.Matrix, workers int) (rounding.Loss, error) {
	e, err := l.power(ctx, q, workers)
	return rounding.Loss{Error: e, Signal: l.Signal}, err
}

// LostOf returns the errors of the layer's outputs for the results of several prepared programs of the layer.
func (l *Layer) LostOf(ctx context.Context, programs []*Program, workers int) ([]rounding.Loss, error) {
	lost := make([]rounding.Loss, len(programs))
	if l.on == nil {
		for i, p := range programs {
			q, err := p.outputsOf(ctx, l.bands, workers)
			if err != nil {
				return nil, err
			}
			if lost[i], err = l.lost(ctx, q, workers); err != nil {
				return nil, err
			}
		}
		return lost, nil
	}
	var all [][]byte
	if l.unmeasured {
		all = append(all, nil)
	}
	for _, p := range programs {
		data, err := p.StoredOf(ctx, l.bands, workers)
		if err != nil {
			return nil, err
		}
		all = append(all, data)
	}
	errors, err := l.on.Powers(ctx, l.stored, all...)
	if err != nil {
		return nil, err
	}
	if l.unmeasured {
		l.Signal, l.unmeasured, errors = errors[0], false, errors[1:]
	}
	for i, e := range errors {
		lost[i] = rounding.Loss{Error: e, Signal: l.Signal}
	}
	return lost, nil
}

// Batch returns the number of programs that LostOf should get at a time.
func (l *Layer) Batch() int {
	const elements = 1 << 26 // a device computes many results together in little more time than one
	if l.on == nil {
		return 1
	}
	return max(1, elements/max(1, l.Rows*l.Cols))
}

// signal returns the power of the outputs, as in Signal.
func (l *Layer) signal(ctx context.Context, workers int) (float64, error) {
	if l.on == nil {
		return l.power(ctx, sgemm.Matrix{}, workers)
	}
	sums, err := l.on.Powers(ctx, l.stored)
	if err != nil {
		return 0, err
	}
	return sums[0], nil
}

// power returns the power of the change of the outputs if the weights are q; if q has no rows, the power of the
// outputs. The inputs have the Hessian's statistics, or without a Hessian, unit variance.
func (l *Layer) power(ctx context.Context, q sgemm.Matrix, workers int) (sum float64, err error) {
	w := l.Weights()
	if l.known {
		h, err := l.Hessian(ctx)
		if err != nil {
			return 0, err
		}
		return rounding.Power(ctx, w, q, h, workers)
	}
	for n := range w.Rows {
		if q.Rows == 0 {
			sum = addPower(sum, w.Row(n))
			continue
		}
		for k, v := range w.Row(n) {
			if d := float64(v); d-d == 0 {
				d -= float64(q.Row(n)[k])
				sum += float64(d * d) // the conversion prevents fusing, for equal results on all machines
			}
		}
	}
	return sum, ctx.Err()
}

// Places converts source positions along an axis of length n into places of the result. A position that is out of
// range or occurs twice is an error.
func (a AxisMap) Places(n int, positions []int) ([]int, error) {
	place := make([]int, n)
	for i := range place {
		place[at(a.Gather, i, i)] = i
	}
	out := make([]int, len(positions))
	seen := make([]bool, n)
	for i, p := range positions {
		if p < 0 || p >= n || seen[p] {
			return nil, fmt.Errorf("position %d is not from 0 to %d, or occurs twice", p, n-1)
		}
		seen[p] = true
		out[i] = place[p]
	}
	return out, nil
}

// ErrNoHessians marks a plan that requires its calibration tokens.
var ErrNoHessians = errors.New("give the tokens that the plan was made with")

// CheckHessians returns an error if a plan was made with other calibration statistics than h. If the plan needs other
// tokens, the error is an [ErrNoHessians]. Without tokens, h is nil.
func CheckHessians(p *plan.Plan, h Hessians) error {
	switch {
	case p == nil:
		return fmt.Errorf("%w: no plan was given", plan.ErrInvalid)
	case p.Request.Hessians == "" && h == nil:
		return nil
	case p.Request.Hessians == "":
		return fmt.Errorf("the plan was made without tokens and would give other bytes with them: give no tokens")
	case h == nil:
		return fmt.Errorf("the plan was made with calibration tokens: %w", ErrNoHessians)
	case h.Key() != p.Request.Hessians:
		return fmt.Errorf("the plan was made with other calibration tokens: %w", ErrNoHessians)
	}
	return nil
}

func ldexp(v float32, exp int) float32 { return float32(math.Ldexp(float64(v), exp)) }
