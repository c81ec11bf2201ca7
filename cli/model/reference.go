package model

import (
	"fmt"
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
)

var referenceFlag = &cli.StringFlag{Name: "reference", Usage: "choose codes near `MODEL`, the unquantised original", DefaultText: "the source"}

var verifyReferenceFlag = &cli.StringFlag{Name: "reference", Usage: "check SNRs against `MODEL`, the --reference of convert", DefaultText: "unchecked"}

// openReference opens the model of --reference and adds it to the options. The caller may call close in any case.
func openReference(c *cli.Context, o *transform.Options) (close func() error, err error) {
	close = func() error { return nil }
	path := c.String("reference")
	if path == "" {
		return close, nil
	}
	if o.Budget.MaxLoss != nil {
		return close, exit.Usagef("--reference cannot be combined with a loss budget (--max-loss), because the loss is relative to the quantised model: give --min-snr, or --passes with arguments")
	}
	m, err := flag.OpenModel(c.Context, path)
	if err != nil {
		return close, err
	}
	o.Reference = m
	return m.Close, nil
}

// withReference adds --reference, if given, to a command's words.
func withReference(c *cli.Context, words ...string) []string {
	if path := c.String("reference"); path != "" {
		words = append(words, "--reference", path)
	}
	return words
}

// printReference prints the output SNRs of source and result against the reference model. For a new format, it prints
// the output SNRs of the codes against the source.
func printReference(w io.Writer, p *plan.Plan) {
	var before, after []float64
	where := unitVariance
	for _, o := range p.Predictions {
		snr := o.SNR
		if o.InputSNR != nil {
			snr, where = o.InputSNR, "on held-out calibration tokens"
		}
		if o.SourceSNR != nil && snr != nil {
			before, after = append(before, *o.SourceSNR), append(after, *snr)
		}
	}
	if p.Request.Format == "" {
		printAgainst(w, before, after, where)
	} else if len(before) > 0 {
		term.Remark(w, "output SNR", fmt.Sprintf("of %s relative to the source's values, %s: mean %.1f dB, lowest %.1f dB; with the nearest codes mean %.1f dB, lowest %.1f dB",
			term.Plural(len(before), "quantised layer", "quantised layers"), where, mean(after), slices.Min(after), mean(before), slices.Min(before)))
	}
}

// printAgainst prints the output SNRs of quantised layers relative to a reference model: of the source and of the result.
func printAgainst(w io.Writer, source, result []float64, where string) {
	if len(source) > 0 {
		term.Remark(w, "reference", fmt.Sprintf("output SNR of %s relative to the reference model, %s: source mean %.1f dB, lowest %.1f dB; result mean %.1f dB, lowest %.1f dB",
			term.Plural(len(source), "quantised layer", "quantised layers"), where, mean(source), slices.Min(source), mean(result), slices.Min(result)))
	}
}

func mean(list []float64) (sum float64) {
	for _, v := range list {
		sum += v / float64(len(list))
	}
	return sum
}

// printReference prints the SNRs of source and result against the reference model. Without one, it prints that the
// plan's claims are not checked.
func (r *verifyJSON) printReference(w io.Writer) {
	if r.Plan == nil || r.Plan.Request.Reference == "" {
		return
	}
	var source, result []float64
	for _, t := range r.Tensors {
		if t.ReferenceSNR != nil && t.SourceReferenceSNR != nil {
			source, result = append(source, *t.SourceReferenceSNR), append(result, *t.ReferenceSNR)
		}
	}
	if printAgainst(w, source, result, unitVariance); !r.checked {
		term.Remark(w, "note", "the SNRs that the plan claims are relative to a reference model: pass --reference MODEL to check them")
	}
}

// unitVariance names the inputs of an output SNR.
const unitVariance = "for inputs of unit variance"
