package model

import (
	"fmt"
	"io"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/evaluate"
	"github.com/lowtoggle/lowtoggle/transform/verify"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// onInputsJSON is what noise lossy layers have on the inputs that the source gives them.
type onInputsJSON struct {
	Tokens  int        `json:"tokens"`
	Part    string     `json:"part"`
	Tensors []layerSNR `json:"tensors"`

	snr   map[string]*float64 // by weight
	coded *quant.Description
}

type layerSNR struct {
	Name string  `json:"name"`
	SNR  float64 `json:"snr_db"`
}

// comparable says which lossy layers can be held against the source's weight by weight, and how many
// cannot. Tensors of quantised weights stand for their weight.
func (r *verifyJSON) comparable(l *arch.Layout) (names map[string]bool, others int) {
	names = map[string]bool{}
	for _, t := range r.Tensors {
		if w, ok := l.Quantised.WeightOf(t.Name); ok {
			t.Name = w.Name
			c := l.Claims[w.Name]
			t.Linear = c != nil && c.Role == arch.Linear
		}
		switch {
		case !t.Linear || t.Class != verify.Lossy && t.Class != verify.Rescaled:
		case t.Relation != nil || t.Shift != nil:
			others++
		default:
			names[t.Name] = true
		}
	}
	return names, others
}

// newOnInputs is nil where no layer has a ratio.
func newOnInputs(o *evaluate.OutputSNR, part string, coded *quant.Description) *onInputsJSON {
	r := &onInputsJSON{Tokens: o.Tokens(), Part: part, snr: map[string]*float64{}, coded: coded}
	for _, l := range o.Layers() {
		r.Tensors = append(r.Tensors, layerSNR{l.Name, l.Decibels})
		r.snr[l.Name] = &l.Decibels
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
	if w, ok := r.coded.WeightOf(tensor); ok {
		if tensor != w.Tensors[0].Name { // the codes stand for the weight
			return nil
		}
		tensor = w.Name
	}
	return r.snr[tensor]
}

// printOnInputs says what the ratios are of, and of how many layers there is none.
func (r *verifyJSON) printOnInputs(w io.Writer) {
	if r.OnInputs != nil {
		term.Remark(w, "SNR on inputs", fmt.Sprintf("the inputs that %s %s tokens produce in the source", term.Count(r.OnInputs.Tokens), r.OnInputs.Part))
	}
	if r.incomparable > 0 {
		term.Remark(w, "note", fmt.Sprintf("the SNR on inputs is not known of %s whose weights were moved or shifted", term.Plural(r.incomparable, "lossy layer", "lossy layers")))
	}
}
