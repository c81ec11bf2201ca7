package program

import (
	"bytes"
	"context"

	"github.com/lowtoggle/lowtoggle/transform/rounding"
	"github.com/lowtoggle/lowtoggle/weights"
)

// chosenAlone reports whether a joint choice takes each value by itself: without a Hessian, and with a chooser that
// depends on the value alone. Rows of the result are then computed when they are needed; only the scale of the
// layer's errors is prepared.
func (j *joint) chosenAlone(p *Program) bool {
	if j.hessians != nil || p.OutAxis != 0 {
		return false
	}
	c, err := j.chooserOf(p, 1)
	if err != nil { // Prepare returns this error
		return false
	}
	a, ok := c.(rounding.Alone)
	return ok && a.Alone()
}

// chooserOf returns the chooser of j without a mask.
func (j *joint) chooserOf(p *Program, scale float64) (rounding.Chooser, error) {
	if j.chooser == nil {
		return rounding.Stored{Format: p.Format}, nil
	}
	_, outputs := p.OutputAxis()
	return j.chooser(outputs, scale)
}

// prepareAlone computes the scale of the layer's errors.
func (p *Program) prepareAlone(ctx context.Context) error {
	var signal float64
	err := weights.Guard(p.File(), func() error {
		return p.Lossless().EachValues(ctx, 0, p.Rows, func(_ Block, v []float32) { signal = addPower(signal, v) })
	})
	if err == nil {
		p.joint.alone, err = p.joint.chooserOf(p, rounding.Loss{Signal: signal}.Scale(p.Rows*p.Cols))
	}
	if err == nil {
		_, err = p.joint.alone.Begin(p.Rows, p.Cols)
	}
	if err != nil {
		p.joint.alone = nil
		return weights.TensorErrorf(p.File(), p.Source.Name, "%w", err)
	}
	return nil
}

// addPower adds the squares of finite values to a sum, in the order of the values.
func addPower(sum float64, values []float32) float64 {
	for _, v := range values {
		if d := float64(v); d-d == 0 {
			sum += float64(d * d) // the conversion prevents fusing, for equal results on all machines
		}
	}
	return sum
}

// chooseAlone replaces loaded values by the chosen values. Values that are not finite do not change.
func (p *Program) chooseAlone(b Block) {
	j := p.joint
	choose, _ := j.alone.Begin(p.Rows, p.Cols) // Prepare has checked the error
	var masked Block
	if j.mask != nil {
		masked = b
		masked.Data = bytes.Clone(b.Data)
		j.mask(masked)
	}
	type own struct {
		k    int
		bits uint32
	}
	var (
		buffer [2048]float32
		aside  []own
	)
	n, size := b.Rows*b.Cols, b.Format.Bits/8
	for first := 0; first < n; first += len(buffer) {
		v := buffer[:min(len(buffer), n-first)]
		data := b.Data[first*size:][:len(v)*size]
		b.Format.Decode(v, data)
		aside = aside[:0]
		for k, x := range v {
			if x-x != 0 {
				aside = append(aside, own{k, b.Format.Elem(data, k)})
				v[k] = 0
			}
		}
		choose(rounding.Column{D: 1, T: v})
		if j.mask != nil {
			for k := range v {
				if masked.Format.Value(masked.Format.Elem(masked.Data, first+k)) == 0 {
					v[k] = 0
				}
			}
		}
		for k := 0; k < len(v) && j.zeroed != nil; k++ {
			if j.zeroed[b.First+(first+k)/b.Cols] {
				v[k] = 0
			}
		}
		b.Format.Encode(data, v)
		for _, o := range aside {
			b.Format.SetElem(data, o.k, o.bits)
		}
	}
}
