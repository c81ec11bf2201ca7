package cost

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Numbers of tokens of a product, its M, in the phases of a workload.
const (
	PrefillTokens = 8192
	DecodeTokens  = 16
)

// typeOf returns the arithmetic that multiplies a stored type, on tensor cores if they support the type. For other
// types it returns the zero value.
func typeOf(d weights.DType) arith.Type {
	if d == weights.F8E5M2 {
		d = weights.F8E4M3
	}
	t, _ := arith.TypeOf(d)
	return t
}

// Estimate is a predicted energy per GEMM.
type Estimate struct {
	// Relative is the energy relative to that of random normal data of the same scale and dtype.
	Relative float64 `json:"relative_energy"`
	// Interval is the 95 % interval of Relative.
	Interval [2]float64 `json:"interval"`
	// Calibration names the card and the date of the coefficients.
	Calibration string `json:"calibration"`
}

// Energy predicts the relative energy of products of a layer's weights and random inputs. A type that was not
// calibrated is predicted by BF16's model, with twice the interval. The Estimate's Calibration then names BF16.
func (c *Calibration) Energy(ctx context.Context, w Weights, role Role, l Workload) (e Estimate, err error) {
	if c == nil {
		return e, errNoCalibration
	}
	e.Calibration = c.label()
	m, err := w.matrix()
	if err != nil {
		return e, err
	}
	for _, part := range l.phases() {
		model, typ, widen := c.modelOf(w.DType, part.cold)
		if model == nil {
			return e, c.unknown(Product{Type: typeOf(w.DType), Cold: part.cold})
		}
		p := w.product(Product{Type: typ, M: part.tokens, N: m.rows, K: m.k, Role: role, Cold: part.cold})
		x := operandMatrix(m.f, p.M, p.K, c.inputs(m.f, p))
		r, err := c.predict(ctx, model, p, layerTiles, x, m)
		if err != nil {
			return e, err
		}
		if widen {
			e.Calibration = c.applied(typ, w.DType)
		}
		half := float64(part.share * (r.Interval[1] - r.Relative) * (1 + truth(widen)))
		e.Relative += float64(part.share * r.Relative)
		e.Interval[0] -= half
		e.Interval[1] += half
	}
	e.Interval[0] += e.Relative
	e.Interval[1] += e.Relative
	return e, nil
}

// inputs returns random x of the type's usual scale. All layers of a shape sample the same blocks, so each block is
// generated once.
func (c *Calibration) inputs(f weights.Format, p Product) Operand {
	type key struct {
		dtype weights.DType
		m, k  int
	}
	type block struct{ row, rows, col, cols int }
	kept, _ := c.drawn.LoadOrStore(key{f.DType, p.M, p.K}, new(sync.Map))
	blocks, draw := kept.(*sync.Map), randomOperand(f.DType, p.M, p.K, RandomSigma(f.DType), 2)
	return func(ctx context.Context, row, rows, col, cols int) ([]byte, error) {
		at := block{row, rows, col, cols}
		if data, ok := blocks.Load(at); ok {
			return data.([]byte), nil
		}
		data, err := draw(ctx, row, rows, col, cols)
		if err == nil {
			blocks.Store(at, data)
		}
		return data, err
	}
}

// modelOf returns a stored type's model. If there is none, it returns BF16's model.
func (c *Calibration) modelOf(d weights.DType, cold bool) (m *Model, typ arith.Type, widen bool) {
	typ = typeOf(d)
	if m := c.model(typ, cold); m != nil {
		return m, typ, d == weights.F8E5M2
	}
	return c.model(arith.BF16, cold), arith.BF16, true
}

// Ceiling predicts the energy of all-zero weights w[N,K]. No change of weights is predicted to save more.
func (c *Calibration) Ceiling(m Multiplied, n, k int, role Role, l Workload) (Estimate, error) {
	f, ok := m.Operand.Format()
	if !ok {
		return Estimate{}, fmt.Errorf("the energy of products with %s weights cannot be predicted: give weights of %s", m.Operand, weights.FormatNames("or"))
	}
	zeros := func(d weights.DType, cols, bits int) Weights {
		return Weights{DType: d, Rows: n, Cols: cols, Bands: []Band{{Data: make([]byte, min(n, bandRows)*cols*bits/8)}}}
	}
	w := zeros(m.Operand, k, f.Bits)
	w.Format = m.Format
	if m.Packed {
		return c.DequantisedEnergy(context.Background(), w, zeros(weights.F8E4M3, k/2, 8), role, l)
	}
	return c.Energy(context.Background(), w, role, l)
}

// Types returns the calibrated types.
func (c *Calibration) Types() (list []arith.Type) {
	for _, m := range c.Models {
		if !slices.Contains(list, m.Type) {
			list = append(list, m.Type)
		}
	}
	return list
}
