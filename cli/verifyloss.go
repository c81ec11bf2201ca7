package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// lossJSON is what source and output lose on the same tokens, in nats per token.
type lossJSON struct {
	Before          float64     `json:"before"`
	After           float64     `json:"after"`
	Difference      float64     `json:"difference"`
	Interval        *[2]float64 `json:"interval,omitempty"` // of the difference; absent with a single sequence
	PerplexityRatio *float64    `json:"perplexity_ratio,omitempty"`
	Tokens          int         `json:"tokens"` // predicted ones
	Part            string      `json:"part"`

	rise   forward.Comparison
	judged judged
}

// verifyJudge judges by the tokens that --tokens names; nil where it names none.
func verifyJudge(c *cli.Context, src *weights.Model, path string, o readings) (*lossJudge, error) {
	if !c.IsSet("tokens") {
		return nil, nil
	}
	file, err := openTokens(c.String("tokens"), src.Dir)
	if err != nil {
		return nil, err
	}
	p, err := partOf(file, evaluationPart)
	if err != nil {
		return nil, err
	}
	return newJudge(src, path, o.family, p, o.workers)
}

// unjudged is the model's own file of tokens, where it has one and could be judged by it.
func unjudged(src *weights.Model, path string, o readings) string {
	file := tokens.Path(src.Dir)
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	if _, err := newJudge(src, path, o.family, judged{}, o.workers); err != nil {
		return ""
	}
	return file
}

// judge computes the losses of source and output, which have the given paths, with progress.
func (r *verifyJSON) judge(c *cli.Context, j *lossJudge, models []*weights.Model, paths []string) error {
	event, end := term.Progress(c)
	defer end()
	countSteps(event, j, j)
	noise := r.inputNoise(c.Context, j, j.stored(models[0]), j.stored(models[1]))
	before, err := j.scores(c.Context, noise.before, noise)
	if err != nil {
		return fmt.Errorf("%s: %w", paths[0], err)
	}
	after, err := j.scores(c.Context, noise.after, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", paths[1], err)
	}
	if r.Loss, err = newLoss(before, after, j.tokens); err != nil {
		return err
	}
	r.OnInputs = noise.report(j.decoder.Layers(), j.tokens.purpose)
	return nil
}

// print writes the losses as a sentence.
func (l *lossJSON) print(w io.Writer) {
	ratio, low, high := l.rise.PerplexityRatio()
	text := fmt.Sprintf("%.6f before, %.6f after, a difference of %s nats per token", l.Before, l.After, signed(l.Difference, 6))
	if l.Interval != nil {
		text += fmt.Sprintf(" (95 %%: %s … %s)", signed(l.rise.Low, 6), signed(l.rise.High, 6))
	}
	text += fmt.Sprintf("; perplexity %s %%", change(ratio))
	if l.Interval != nil {
		text += fmt.Sprintf(", between %s %% and %s %%", change(low), change(high))
	}
	term.Remark(w, "loss", fmt.Sprintf("%s (%s %s tokens)", text, term.Count(l.Tokens), l.Part))
	if note := wider(l.rise, l.judged); note != "" {
		term.Remark(w, "note", note)
	}
}

// newLoss compares scores on the same tokens.
func newLoss(before, after *forward.Scores, p judged) (*lossJSON, error) {
	rise, err := forward.Compare(before, after)
	if err != nil {
		return nil, err
	}
	ratio, _, _ := rise.PerplexityRatio()
	return &lossJSON{before.Loss(), after.Loss(), rise.Difference, finiteInterval(rise.Low, rise.High), finite(ratio),
		p.predicted(), p.purpose, rise, p}, nil
}
