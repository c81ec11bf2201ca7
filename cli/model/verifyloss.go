package model

import (
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/evaluate"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// lossJSON is the loss of source and output on the same tokens, in nats per token.
type lossJSON struct {
	Before          float64     `json:"before"`
	After           float64     `json:"after"`
	Difference      float64     `json:"difference"`
	Interval        *[2]float64 `json:"interval,omitempty"` // of the difference; absent with a single sequence
	PerplexityRatio *float64    `json:"perplexity_ratio,omitempty"`
	Tokens          int         `json:"tokens"` // number of predicted tokens
	Part            string      `json:"part"`

	rise   forward.Comparison
	tokens tokens.Set
}

// verifyJudge returns the evaluator of the tokens of --tokens; nil without the flag.
func verifyJudge(c *cli.Context, src *weights.Model, path string, o flag.Options) (*evaluate.Scorer, error) {
	if !c.IsSet("tokens") {
		return nil, nil
	}
	file, err := openTokens(c.Context, c.String("tokens"), src.Dir)
	if err != nil {
		return nil, err
	}
	p, err := file.Set(tokens.Evaluation)
	if err != nil {
		return nil, err
	}
	return evaluate.New(src, o.Family, p, o.Workers)
}

// unjudged returns the model's own token file; empty if there is none or the model cannot be evaluated.
func unjudged(src *weights.Model, path string, o flag.Options) string {
	file := tokens.Path(src.Dir)
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	if err := evaluate.Check(src, o.Family); err != nil {
		return ""
	}
	return file
}

// judge computes the losses of source and output, with progress. With --update-card, it writes them to the output's card.
func (r *verifyJSON) judge(c *cli.Context, s *evaluate.Scorer, src, out *weights.Model) error {
	cards, err := openCards(c, src, []*weights.Model{out}, s.Tokens.File)
	if err != nil {
		return err
	}
	event, end := term.Progress(c)
	defer end()
	stopped := countSteps(event, s, s)
	var layers map[string]bool
	layers, r.incomparable = r.comparable(s.Layout)
	snr := s.OutputSNR(c.Context, src, out, layers)
	loss, err := s.Compare(c.Context, src, out, snr)
	if err != nil && loss != nil {
		r.lossBefore = &loss.Before
	}
	if err != nil {
		return stopped(err, "run the same command again, or compute the loss alone, on fewer sequences, with lowtoggle eval --sequences N")
	}
	r.Loss, r.OnInputs = newLoss(loss), newOnInputs(snr, s.Tokens.Purpose, s.Layout.Quantised)
	r.Card, err = cards.write(c.Context, 0, *loss)
	return err
}

// print prints the losses as a sentence.
func (l *lossJSON) print(w io.Writer) {
	ratio, low, high := l.rise.PerplexityRatio()
	text := fmt.Sprintf("%.6f before, %.6f after, a difference of %s nats per token", l.Before, l.After, term.Signed(l.Difference, 6))
	if l.Interval != nil {
		text += fmt.Sprintf(" (95 %%: %s … %s)", term.Signed(l.rise.Low, 6), term.Signed(l.rise.High, 6))
	}
	text += fmt.Sprintf("; perplexity %s %%", change(ratio))
	if l.Interval != nil {
		text += fmt.Sprintf(", between %s %% and %s %%", change(low), change(high))
	}
	term.Remark(w, "loss", fmt.Sprintf("%s (%s %s tokens)", text, term.Count(l.Tokens), l.Part))
	if note := wider(l.rise, l.tokens); note != "" {
		term.Remark(w, "note", note)
	}
}

func newLoss(l *evaluate.Comparison) *lossJSON {
	ratio, _, _ := l.PerplexityRatio()
	return &lossJSON{l.Before, l.After, l.Difference, finiteInterval(l.Low, l.High), finite(ratio),
		l.Tokens.Predicted(), l.Tokens.Purpose, l.Comparison, l.Tokens}
}
