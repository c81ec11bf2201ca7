package model

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/divergence"
	"github.com/lowtoggle/lowtoggle/gemm/evaluate"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// evalReport holds the results of eval: the first model, and the comparisons of the others with the first.
type evalReport struct {
	models []evalJSON
	tokens tokens.Set
	gpu    string // name of the GPU; empty: the CPU
	// productsOnly is the reason why the GPU computed the linear layers only; empty if it computed everything.
	productsOnly string
}

// evalJSON is a model in the output of eval --json.
type evalJSON struct {
	Model      string       `json:"model"`
	Loss       float64      `json:"loss"`                 // nats per token
	Perplexity *float64     `json:"perplexity,omitempty"` // absent if not finite
	Tokens     int          `json:"tokens"`               // number of predicted tokens: all but the first of each sequence
	Part       string       `json:"part"`
	Sequences  int          `json:"sequences"`
	TokensFile string       `json:"tokens_file"`
	Split      string       `json:"split"`
	Device     string       `json:"device"`  // CPU, or the name of the GPU
	Seconds    float64      `json:"seconds"` // running time of the model
	Against    *againstJSON `json:"against,omitempty"`
	Card       string       `json:"card,omitempty"` // model card that has the perplexity now

	rise forward.Comparison
}

// againstJSON compares a model with the first model.
type againstJSON struct {
	Model              string      `json:"model"`
	LossDifference     float64     `json:"loss_difference"`
	Interval           *[2]float64 `json:"interval,omitempty"` // of the difference; absent with a single sequence
	PerplexityRatio    *float64    `json:"perplexity_ratio,omitempty"`
	PerplexityInterval *[2]float64 `json:"perplexity_interval,omitempty"`
	Divergence         float64     `json:"divergence"` // KL(first model ‖ this model), in nats per token
}

// add adds a model's losses and running time. first holds the losses of the first model; divergence is KL(first model
// ‖ model), in nats per token.
func (r *evalReport) add(model string, first, scores *forward.Scores, divergence float64, took time.Duration) error {
	p := r.tokens
	m := evalJSON{Model: model, Loss: scores.Loss(), Perplexity: finite(scores.Perplexity()), Tokens: p.Predicted(),
		Part: p.Purpose, Sequences: p.N, TokensFile: p.File, Split: p.Split, Device: cmp.Or(r.gpu, "CPU"), Seconds: took.Seconds()}
	if len(r.models) > 0 {
		var err error
		if m.rise, err = forward.Compare(first, scores); err != nil {
			return err
		}
		ratio, low, high := m.rise.PerplexityRatio()
		m.Against = &againstJSON{r.models[0].Model, m.rise.Difference, finiteInterval(m.rise.Low, m.rise.High), finite(ratio), finiteInterval(low, high), divergence}
	}
	r.models = append(r.models, m)
	return nil
}

// updateCards writes the comparisons to the conversions' cards. Without --update-card, cards is nil.
func (r *evalReport) updateCards(ctx context.Context, cards *cardUpdate) (err error) {
	for i := 1; i < len(r.models) && err == nil; i++ {
		m := &r.models[i]
		m.Card, err = cards.write(ctx, i-1, evaluate.Comparison{Before: r.models[0].Loss, After: m.Loss, Comparison: m.rise, Tokens: r.tokens})
	}
	return err
}

// finite returns a pointer to v; nil if v is not finite, so that JSON leaves the field out.
func finite(v float64) *float64 {
	if v-v != 0 {
		return nil
	}
	return &v
}

func finiteInterval(low, high float64) *[2]float64 {
	if high-low-(high-low) != 0 {
		return nil
	}
	return &[2]float64{low, high}
}

// evalDocument is the output of eval --json. For a single model, the model's fields are also at the top level.
type evalDocument struct {
	*evalJSON
	Models []evalJSON `json:"models"`
}

func (r *evalReport) document() evalDocument {
	d := evalDocument{Models: r.models}
	if len(r.models) == 1 {
		d.evalJSON = &r.models[0]
	}
	return d
}

func (r *evalReport) print(w io.Writer) {
	head := []string{"model", "loss", "perplexity"}
	if len(r.models) > 1 {
		head = append(head, "change", "95 %", "divergence")
	}
	tab := term.NewTable(head...)
	var notes, times []string
	for _, m := range r.models {
		row := []string{m.Model, fmt.Sprintf("%.6f", m.Loss), perplexity(m.Perplexity)}
		switch {
		case m.Against != nil:
			row = append(append(row, riseCells(m.rise)...), fmt.Sprintf("%.3g", m.Against.Divergence))
			if note := wider(m.rise, r.tokens); note != "" {
				notes = append(notes, m.Model+": "+note)
			}
		case len(r.models) > 1:
			row = append(row, "–", "–", "–")
		}
		tab.Add(row...)
		times = append(times, m.Model+" "+term.Duration(time.Duration(m.Seconds*float64(time.Second))))
	}
	tab.Print(w)
	fmt.Fprintln(w)
	p := r.tokens
	term.Remark(w, "loss", fmt.Sprintf("mean over %s (all but the first of each sequence), in nats per token", term.Plural(p.Predicted(), "token", "tokens")))
	if len(r.models) > 1 {
		term.Remark(w, "change", "of perplexity, relative to "+r.models[0].Model+"; the 95 % interval is computed from the loss differences of the sequences")
		term.Remark(w, "divergence", "mean over all tokens of KL("+r.models[0].Model+" ‖ the row's model), in nats")
	}
	term.Remark(w, "tokens", fmt.Sprintf("part %s of %s: %s", p.Purpose, p.File, p.Split))
	term.Remark(w, "device", r.device())
	term.Remark(w, "time", strings.Join(times, ", "))
	term.Remarks(w, "note", notes)
	for _, m := range r.models {
		if m.Card != "" {
			term.Remark(w, "card", cardRemark(m.Card))
		}
	}
}

// device describes the processor that computed the losses.
func (r *evalReport) device() string {
	switch {
	case r.gpu == "":
		return "CPU, in float32"
	case r.productsOnly != "":
		return r.gpu + " for linear layers and the CPU for the rest, in float32: " + r.productsOnly
	}
	return r.gpu + ", with float32 activations"
}

func perplexity(v *float64) string {
	switch {
	case v == nil:
		return "–"
	case *v < 1e6:
		return fmt.Sprintf("%.6f", *v)
	}
	return fmt.Sprintf("%.3g", *v)
}

// riseCells formats a change of perplexity and its interval.
func riseCells(c forward.Comparison) []string {
	ratio, low, high := c.PerplexityRatio()
	interval := "–"
	if finiteInterval(low, high) != nil {
		interval = change(low) + " … " + change(high) + " %"
	}
	return []string{change(ratio) + " %", interval}
}

// change writes a ratio of perplexities as a change in per cent.
func change(ratio float64) string { return term.Signed(100*(ratio-1), 3) }

// fine is the half-width of an interval that tells conversions of usual budgets apart, in nats per token. It is 0.05 %
// of perplexity.
const fine = 0.0005

// wider says how many tokens an interval of half-width fine needs; empty if the interval of c is no wider.
func wider(c forward.Comparison, p tokens.Set) string {
	if p.N == 1 {
		return "a single sequence gives no interval: give several sequences"
	}
	n, err := divergence.Needed(c, p.N, fine)
	if err != nil || n <= p.N {
		return ""
	}
	n = twoDigits(n)
	return fmt.Sprintf("an interval of ±%g %% of perplexity needs about %s sequences like these, %s tokens", 100*fine, term.Count(n), term.Count(twoDigits(n*p.T)))
}

// twoDigits rounds an estimate up to two significant digits.
func twoDigits(n int) int {
	unit := 1
	for n > 99*unit {
		unit *= 10
	}
	return (n + unit - 1) / unit * unit
}
