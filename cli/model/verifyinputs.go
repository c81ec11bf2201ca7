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

// onInputsJSON is the noise in the outputs of lossy layers, for inputs from the source model.
type onInputsJSON struct {
	Tokens  int        `json:"tokens"`
	Part    string     `json:"part"`
	Tensors []layerSNR `json:"tensors"`

	snr   map[string]*float64 // dB, by the name of the weight
	coded *quant.Description
}

type layerSNR struct {
	Name string  `json:"name"`
	SNR  float64 `json:"snr_db"`
}

// comparable returns the lossy layers whose weights can be compared with the source's element by element. others
// counts the remaining lossy layers. The tensors of a quantised weight count as one layer.
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

// newOnInputs returns nil if no layer has an SNR.
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

// of returns a layer's SNR in dB; nil if unknown.
func (r *onInputsJSON) of(tensor string) *float64 {
	if r == nil {
		return nil
	}
	if w, ok := r.coded.WeightOf(tensor); ok {
		if tensor != w.Tensors[0].Name { // the tensor with the codes stands for the weight
			return nil
		}
		tensor = w.Name
	}
	return r.snr[tensor]
}

// printOnInputs prints which inputs the SNRs are for, and how many layers have no SNR.
func (r *verifyJSON) printOnInputs(w io.Writer) {
	if r.OnInputs != nil {
		term.Remark(w, "SNR on inputs", fmt.Sprintf("output SNR of lossy layers on the inputs that %s %s tokens produce in the source", term.Count(r.OnInputs.Tokens), r.OnInputs.Part))
	}
	if r.incomparable > 0 {
		term.Remark(w, "note", fmt.Sprintf("the SNR on inputs of %s is not known, because weights were moved or shifted", term.Plural(r.incomparable, "lossy layer", "lossy layers")))
	}
}
