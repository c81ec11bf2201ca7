package pass

import (
	"context"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Sample is a few ranges of a layer's rows, for comparing programs of the layer.
type Sample struct {
	layer  *Layer
	ranges [][2]int
	data   []byte  // rows of one program at a time
	scale  float64 // root mean square of the source's rows; 0: not computed yet
}

// Sample returns ranges of rows, spread evenly, that are whole blocks of all the given programs.
func (l *Layer) Sample(programs ...*program.Program) *Sample {
	p, unit := l.base, 1
	for _, q := range programs {
		unit = max(unit, q.Unit) // all are powers of two
	}
	s := &Sample{layer: l, ranges: l.bands}
	if l.bands == nil {
		s.ranges = cost.SampleRows(p.Rows, p.Cols, unit)
	}
	rows := 0
	for _, r := range s.ranges {
		rows += r[1] - r[0]
	}
	s.data = make([]byte, rows*p.OperandRowBytes())
	return s
}

// Energy predicts the energy of a product with a program's result from the sample's rows. If powers of two are
// planned, the energy is relative to random weights of the source's scale, so energies before and after are
// comparable. For a weight stored as codes, Energy predicts the operand of the tensor cores. For four-bit codes in
// decode, it includes reading the codes from memory.
func (s *Sample) Energy(ctx context.Context, p *program.Program) (e cost.Estimate, err error) {
	return s.energyOf(ctx, p, nil)
}

// OnlyRead tells the operating system that, until end is called, only the sample of the layer is read; see
// [weights.Sampled].
func (s *Sample) OnlyRead() (end func()) { return s.layer.Weight.Sampled(s.ranges) }

// energyOf is Energy after a change of the operand; nil: no change.
func (s *Sample) energyOf(ctx context.Context, p *program.Program, change program.Op) (e cost.Estimate, err error) {
	w := cost.Weights{DType: p.OperandDType(), OutAxis: p.OutAxis, Rows: p.Rows, Cols: p.Cols}
	if p.Coded() {
		w.Format = &p.Source.Quantised.Format
	}
	f, _ := w.DType.Format()
	rest := s.data
	for _, r := range s.ranges {
		if err := ctx.Err(); err != nil {
			return e, err
		}
		n := (r[1] - r[0]) * p.OperandRowBytes()
		p.RunOperand(rest[:n], r[0], r[1]-r[0])
		if change != nil {
			change(program.Block{First: r[0], Rows: r[1] - r[0], Cols: p.Cols, Data: rest[:n], Format: f})
		}
		w.Bands = append(w.Bands, cost.Band{First: r[0], Data: rest[:n]})
		rest = rest[n:]
	}
	if p.Coded() && change == nil && p.IsIdentity() && s.scale == 0 { // the rows are the source's values
		if s.scale, err = w.RMS(ctx); err != nil {
			return e, err
		}
	}
	if p.Scales() || p.Coded() {
		if w.Scale, err = s.sourceScale(ctx, p); err != nil {
			return e, err
		}
	}
	if d, ok := s.layer.Cost.(dequantiser); ok && p.Dequantised() {
		e, err = d.DequantisedEnergy(ctx, w, s.packed(p), s.layer.Role, s.layer.Workload)
	} else {
		e, err = s.layer.Cost.Energy(ctx, w, s.layer.Role, s.layer.Workload)
	}
	if err != nil {
		err = weights.TensorErrorf(p.File(), p.Source.Name, "predicting energy: %w", err)
	}
	return e, err
}

// dequantiser is a [Cost] for kernels that dequantise four-bit codes. [cost.Calibration] implements it.
type dequantiser interface {
	DequantisedEnergy(ctx context.Context, units, codes cost.Weights, role cost.Role, l cost.Workload) (cost.Estimate, error)
}

// packed returns the codes of the sample's rows as stored in memory. Only decode is bound by reading them.
func (s *Sample) packed(p *program.Program) cost.Weights {
	codes := cost.Weights{DType: weights.F8E4M3, Rows: p.Rows, Cols: p.Cols / 2}
	if s.layer.Workload.Decode > 0 {
		for _, r := range s.ranges {
			codes.Bands = append(codes.Bands, cost.Band{First: r[0], Data: p.PackedRows(r[0], r[1]-r[0])})
		}
	}
	return codes
}

// sourceScale returns the root mean square of the sample's rows in a program's source.
func (s *Sample) sourceScale(ctx context.Context, p *program.Program) (_ float64, err error) {
	if s.scale > 0 {
		return s.scale, nil
	}
	w := cost.Weights{DType: p.OperandDType(), OutAxis: p.OutAxis, Rows: p.Rows, Cols: p.Cols}
	source := p.Untouched()
	for _, r := range s.ranges {
		data := make([]byte, (r[1]-r[0])*p.OperandRowBytes())
		source.RunOperand(data, r[0], r[1]-r[0])
		w.Bands = append(w.Bands, cost.Band{First: r[0], Data: data})
	}
	s.scale, err = w.RMS(ctx)
	return s.scale, err
}

// Loss returns the error of a program in the sample's rows.
func (s *Sample) Loss(ctx context.Context, p *program.Program) (sum program.Loss, err error) {
	if p.LossOfWhole() {
		return p.Loss(ctx, 0, p.Rows)
	}
	for _, r := range s.ranges {
		l, err := p.Loss(ctx, r[0], r[1])
		if err != nil {
			return sum, err
		}
		sum = sum.Plus(l)
	}
	return sum, nil
}
