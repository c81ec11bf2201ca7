package model

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/internal/printable"
)

var (
	maxLossFlag       = &cli.StringFlag{Name: "max-loss", Usage: "perplexity may rise by `SHARE`, e.g. 0.1%", DefaultText: "the recipe's, or none"}
	evalMaxLossFlag   = &cli.StringFlag{Name: "max-loss", Usage: "exit with 3 if perplexity rises by over `SHARE`", DefaultText: "no limit"}
	verifyMaxLossFlag = &cli.StringFlag{Name: "max-loss", Usage: "exit with 3 if perplexity rises by over `SHARE`", DefaultText: "OUT's"}
)

// nats converts a rise of the perplexity (a share) into nats per token.
func nats(share float64) *float64 {
	v := math.Log1p(share)
	return &v
}

// largeShare is the smallest --max-loss without a percent sign that prints a notice. The user of --max-loss 1 may have
// meant 1 %.
const largeShare = 0.05

// readMaxLoss reads --max-loss, in nats per token; nil without the flag.
func readMaxLoss(c *cli.Context) (*float64, error) {
	if !c.IsSet("max-loss") {
		return nil, nil
	}
	text := c.String("max-loss")
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v > 0 && v <= 1) {
		return nil, exit.Usagef("--max-loss %q: give a share such as 0.1%% or 0.001, with a decimal point, above 0 and up to 100%%", text)
	}
	if !percent && v >= largeShare {
		term.Notice(c, "--max-loss %s means that perplexity may rise by %.3g %%; for %[1]s %% write %[1]s%%", strings.TrimSpace(text), 100*v)
	}
	return nats(v), nil
}

// errAboveMaxLoss returns an error if the loss of out rises by more than limit; nil otherwise. Both are in nats per
// token; a nil limit is no limit.
func errAboveMaxLoss(out string, rise float64, limit *float64) error {
	if limit == nil || rise <= *limit {
		return nil
	}
	return fmt.Errorf("%w: %s: perplexity rises by %.4f %%, more than the %.3g %% allowed; convert again within a smaller budget: --max-loss with --tokens, or a larger --min-snr",
		exit.ErrShort, printable.Quote(out), 100*math.Expm1(rise), 100*math.Expm1(*limit))
}

// withinMaxLoss describes a loss that rises by no more than limit, and whether the interval does; empty for no limit
// or a larger rise. The limit is in nats per token.
func withinMaxLoss(rise forward.Comparison, limit *float64) string {
	if limit == nil || !(rise.Difference <= *limit) {
		return ""
	}
	text := fmt.Sprintf("perplexity stays within the allowed rise of %.3g %%", 100*math.Expm1(*limit))
	if _, _, high := rise.PerplexityRatio(); rise.High > *limit && !math.IsInf(high, 0) {
		text += fmt.Sprintf("; the 95 %% interval reaches %s %%, so a larger rise is possible: give more sequences for a narrower interval", change(high))
	}
	return text
}

// remarkLimit prints the text of withinMaxLoss, if there is one.
func remarkLimit(w io.Writer, text string) {
	if text != "" {
		term.Remark(w, "limit", text)
	}
}

// aboveMaxLoss returns an error for each conversion whose loss rises by more than limit.
func (r *evalReport) aboveMaxLoss(limit *float64) (err error) {
	for _, m := range r.models {
		if m.Against != nil {
			err = errors.Join(err, errAboveMaxLoss(m.Model, m.Against.LossDifference, limit))
		}
	}
	return err
}

// aboveMaxLoss returns an error if the loss of OUT rises by more than limit; nil: by more than the budget of the
// conversion, if it had one.
func (r *verifyJSON) aboveMaxLoss(out string, limit *float64) error {
	if r.Loss == nil {
		return nil
	}
	return errAboveMaxLoss(out, r.Loss.Difference, r.limit(limit))
}

// limit returns given; if it is nil, the budget of the conversion, which may be nil.
func (r *verifyJSON) limit(given *float64) *float64 {
	if given == nil && r.Plan != nil {
		return r.Plan.Request.MaxLoss
	}
	return given
}
