package cli

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/transform/verify"
)

// onInputsJSON is what noise lossy layers have on the inputs that the source gives them.
type onInputsJSON struct {
	Tokens  int        `json:"tokens"`
	Part    string     `json:"part"`
	Tensors []layerSNR `json:"tensors"`

	snr map[string]*float64
}

type layerSNR struct {
	Name string  `json:"name"`
	SNR  float64 `json:"snr_db"`
}

// comparable says which lossy layers can be held against the source's weight by weight, and how many
// cannot.
func (r *verifyJSON) comparable() (names map[string]bool, others int) {
	shifted := map[string]bool{}
	for _, s := range r.Plan.Steps {
		if s.Shift != nil {
			shifted[s.Tensor] = true
		}
	}
	names = map[string]bool{}
	for _, t := range r.Tensors {
		switch {
		case !t.Linear || t.Class != verify.Lossy:
		case t.Relation != nil || shifted[t.Name]:
			others++
		default:
			names[t.Name] = true
		}
	}
	return names, others
}

// inputNoise looks at those layers while the source is run.
func (r *verifyJSON) inputNoise(ctx context.Context, j *lossJudge, before, after forward.Weights) *inputNoise {
	var names map[string]bool
	names, r.incomparable = r.comparable()
	o := &inputNoise{ctx: ctx, before: before, after: after, workers: j.decoder.Workers, layers: map[string]forward.Layer{},
		axis: func(tensor string) int { return j.layout.OutAxis(tensor) }, power: map[string][2]float64{}}
	for _, l := range j.decoder.Layers() {
		if names[l.Tensor] {
			o.layers[l.Tensor] = l
		}
	}
	return o
}

// inputNoise is an Observer of the source. Of every layer's first batch it takes the power of the
// output and of what changed weights would add to that: a few thousand tokens tell the ratio well.
type inputNoise struct {
	ctx           context.Context
	before, after forward.Weights
	layers        map[string]forward.Layer // to look at
	axis          func(tensor string) int  // that counts outputs
	workers       int

	tokens int
	power  map[string][2]float64
}

// Input multiplies the first batch of each layer.
func (o *inputNoise) Input(names []string, x sgemm.Matrix) error {
	for _, name := range names {
		l, wanted := o.layers[name]
		if _, done := o.power[name]; done || !wanted {
			continue
		}
		before, err := o.before.Tensor(o.ctx, name)
		if err != nil {
			return err
		}
		after, err := o.after.Tensor(o.ctx, name)
		if err != nil {
			return err
		}
		noise := make([]float32, len(after))
		for i := range noise {
			noise[i] = after[i] - before[i]
		}
		var p [2]float64
		for i, w := range [][]float32{before, noise} {
			if p[i], err = o.outputPower(x, w, l); err != nil {
				return err
			}
		}
		o.tokens, o.power[name] = x.Rows, p
	}
	return nil
}

// outputPower is the sum of squares of a layer's outputs.
func (o *inputNoise) outputPower(x sgemm.Matrix, values []float32, l forward.Layer) (sum float64, err error) {
	w := sgemm.Dense(l.Outputs, l.Inputs, values)
	transposed := o.axis(l.Tensor) == 1
	if transposed {
		w = sgemm.Dense(l.Inputs, l.Outputs, values)
	}
	const chunk = 128 // tokens, as outputs may be a vocabulary
	y := sgemm.Dense(min(chunk, x.Rows), l.Outputs, nil)
	for from := 0; from < x.Rows; from += chunk {
		to := min(from+chunk, x.Rows)
		part := y.Slice(0, to-from, 0, l.Outputs)
		if err := (forward.CPU{Workers: o.workers}).Mul(o.ctx, part, x.Slice(from, to, 0, x.Cols), w, transposed); err != nil {
			return 0, err
		}
		for i := range part.Rows {
			for _, v := range part.Row(i) {
				sum += float64(v) * float64(v)
			}
		}
	}
	return sum, nil
}

// report gives the ratios, in the order of the layers; nil where there are none.
func (o *inputNoise) report(layers []forward.Layer, part string) *onInputsJSON {
	r := &onInputsJSON{Tokens: o.tokens, Part: part, snr: map[string]*float64{}}
	for _, l := range layers {
		p := o.power[l.Tensor]
		if snr := finite(10 * math.Log10(p[0]/p[1])); snr != nil {
			r.Tensors = append(r.Tensors, layerSNR{l.Tensor, *snr})
			r.snr[l.Tensor] = snr
		}
	}
	if len(r.Tensors) == 0 {
		return nil
	}
	return r
}

// of is a layer's ratio; nil where it is not known.
func (r *onInputsJSON) of(tensor string) *float64 {
	if r == nil {
		return nil
	}
	return r.snr[tensor]
}

// printOnInputs says what the ratios are of, and of how many layers there is none.
func (r *verifyJSON) printOnInputs(w io.Writer) {
	if r.OnInputs != nil {
		term.Remark(w, "SNR on inputs", fmt.Sprintf("those that %s %s tokens make in the source", term.Count(r.OnInputs.Tokens), r.OnInputs.Part))
	}
	if r.incomparable > 0 {
		term.Remark(w, "note", fmt.Sprintf("the SNR on inputs is not known of %s whose weights were moved or shifted", term.Plural(r.incomparable, "lossy layer", "lossy layers")))
	}
}
