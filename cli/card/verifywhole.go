package card

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/weights"
)

// wholeFlags are the flags of verify --gpu --whole.
var wholeFlags = []cli.Flag{
	&cli.BoolFlag{Name: "whole", Usage: "with --gpu: measure joules per token of whole models", DisableDefaultText: true},
	&cli.StringFlag{Name: "batch", Usage: "with --whole: batch sizes in decode: `N,...`, or none", DefaultText: "1,16,64"},
	&cli.IntFlag{Name: "context", Usage: "with --whole: `TOKENS` of a sequence in decode", DefaultText: "prompt + output/2"},
	&cli.IntFlag{Name: "prompt", Usage: "with --whole: `TOKENS` of the prefill; 0: none", DefaultText: "4096, or less"},
	&cli.StringFlag{Name: "also", Usage: "with --whole: also measure `OUT2,...`, without checking them"},
	&cli.IntFlag{Name: "output", Usage: "with --whole: output `TOKENS` of a request", DefaultText: "256, or less"},
}

// readWhole reads the flags of verify --gpu --whole; it returns nil without --whole.
func readWhole(c *cli.Context, o flag.Options, q *request) (*measure.WholeOptions, error) {
	if !c.Bool("whole") {
		for _, f := range wholeFlags {
			if name := f.Names()[0]; c.IsSet(name) {
				return nil, exit.Usagef("--%[1]s needs --whole: add --whole, or leave --%[1]s out", name)
			}
		}
		return nil, nil
	}
	for _, name := range []string{"total", "x", "components", "bench", "duty", "workload", "role"} {
		if c.IsSet(name) {
			return nil, exit.Usagef("--%s applies to linear layers alone: leave it out with --whole", name)
		}
	}
	w := &measure.WholeOptions{Family: o.Family, Context: c.Int("context"), Prompt: c.Int("prompt"), Output: c.Int("output"), Meter: q.meter}
	for _, name := range []string{"context", "prompt", "output"} {
		least := 1
		if name == "prompt" { // 0: no prefill
			least = 0
		}
		if n := c.Int(name); c.IsSet(name) && n < least {
			return nil, exit.Usagef("--%s %d: give a number of at least %d", name, n, least)
		}
	}
	if c.IsSet("prompt") && w.Prompt == 0 {
		w.Prompt = -1
	}
	switch text := c.String("batch"); {
	case text == "none":
		w.Batches = []int{}
	case c.IsSet("batch"):
		for part := range strings.SplitSeq(text, ",") {
			n, err := strconv.Atoi(strings.TrimSpace(part))
			if err != nil || n < 1 {
				return nil, exit.Usagef("--batch %s: %q is not a number of sequences: write numbers such as 1,16,64, or none", text, part)
			}
			w.Batches = append(w.Batches, n)
		}
	}
	if len(w.Batches) == 0 && w.Batches != nil && w.Prompt < 0 {
		return nil, exit.Usagef("--batch none --prompt 0 leaves nothing to measure: give a number above 0 for --batch or --prompt")
	}
	return w, nil
}

// Whole reports whether whole models are measured.
func (q *Verification) Whole() bool { return q.whole != nil }

// CheckWhole returns the errors of --whole that are known before anything is verified or loaded. Without --whole the
// error is nil.
func (q *Verification) CheckWhole(src, out *weights.Model) error {
	if q == nil || q.whole == nil {
		return nil
	}
	err := q.whole.Check(src, out)
	if errors.Is(err, measure.ErrTooLong) {
		return exit.Usage(fmt.Errorf("--prompt, --output or --context: %w", err))
	}
	return withoutWhole(err)
}

// also returns the folders of --also.
func also(c *cli.Context) (folders []string) {
	for dir := range strings.SplitSeq(c.String("also"), ",") {
		if dir = strings.TrimSpace(dir); dir != "" {
			folders = append(folders, dir)
		}
	}
	return folders
}

// MeasureWhole measures whole models. After an error, the report has the steps measured so far; it may be nil.
func (q *Verification) MeasureWhole(c *cli.Context, cards machines, src, out *weights.Model) (*measure.WholeReport, error) {
	event, end := term.Progress(c)
	defer end()
	o := *q.whole
	for _, dir := range also(c) {
		m, err := flag.OpenModel(c.Context, dir)
		if err != nil {
			return nil, err
		}
		defer m.Close()
		o.Others = append(o.Others, m)
	}
	o.Progress = event
	r, err := measure.Whole(c.Context, cards[0].Machine, src, out, o)
	return r, interrupted(withoutWhole(err), r != nil && len(r.Steps) > 0)
}

// withoutWhole adds advice to an error that only --whole causes.
func withoutWhole(err error) error {
	if errors.Is(err, cuda.ErrNoCompiler) || errors.Is(err, cuda.ErrNoKernel) || errors.Is(err, decoder.ErrNoForward) {
		return fmt.Errorf("%w: leave --whole out to measure the linear layers alone", err)
	}
	return err
}

// PrintWhole prints the energy of whole models.
func PrintWhole(w io.Writer, r *measure.WholeReport) {
	if r.Simulated {
		term.Remark(w, "note", simulatedNote)
		fmt.Fprintln(w)
	}
	for _, s := range r.Steps {
		if line := gain(s); line != "" {
			fmt.Fprintln(w, line)
		}
	}
	fmt.Fprintf(w, "\n%s: whole model, all operations\n\n", measuredOn(r.Simulated, r.GPU, r.CardID))
	tab := term.NewTable("step", "energy\nper\ntoken", "95 %", "time\nper\ntoken", "mJ per\ntoken\nbefore, after", "power, W\nbefore,\nafter", "linear\nlayers", "note")
	for _, s := range r.Steps {
		if s.Relative == 0 {
			tab.Add(shortStep(s), "–", "–", "–", "–", "–", "–", "")
			continue
		}
		tab.Add(shortStep(s), term.MeasuredChange(s.Relative, s.Interval), term.Interval(s.Interval), term.MeasuredChange(s.RelativeTime, s.TimeInterval),
			fmt.Sprintf("%s, %s", millijoules(s.Before.Joules), millijoules(s.After.Joules)), fmt.Sprintf("%.0f, %.0f", s.Before.Watts, s.After.Watts),
			share(s.LinearEnergy), capped(s))
		for _, other := range s.Others {
			tab.Add("  "+filepath.Base(other.Model), term.MeasuredChange(other.Relative, other.Interval), term.Interval(other.Interval),
				term.MeasuredChange(other.RelativeTime, other.TimeInterval), fmt.Sprintf("%s, %s", millijoules(s.Before.Joules), millijoules(other.After.Joules)),
				fmt.Sprintf("%.0f, %.0f", s.Before.Watts, other.After.Watts), "", "")
		}
	}
	tab.Print(w)
	fmt.Fprintln(w)
	for _, q := range r.Requests {
		term.Remark(w, "request", fmt.Sprintf("%s prompt and %s output tokens, batch %d, decoded at context %d: %s → %s mJ per output token (%s), %s → %s mJ per token of prompt and output",
			term.Count(q.Prompt), term.Count(q.Output), q.Batch, q.Context, millijoules(q.PerOutputBefore), millijoules(q.PerOutputAfter), requestChange(q),
			millijoules(q.PerTotalBefore), millijoules(q.PerTotalAfter)))
	}
	term.Remark(w, "energy, time", relativeNote)
	term.Remark(w, "linear layers", "share of the source's energy, measured by running the linear layers alone; the share includes the card's idle power in that time")
	var null, time float64
	var warnings []string
	for _, s := range r.Steps {
		null = max(null, s.Run.Resolvable)
		if n := s.Run.Null.TimeInterval; n != nil {
			time = max(time, 1-n[0], n[1]-1)
		}
		warnings = append(warnings, s.Run.Warnings...)
	}
	if null > 0 {
		term.Remark(w, "null", fmt.Sprintf("a copy of the source was measured too; effects below %.2f %% of energy or %.2f %% of time are not resolved", 100*null, 100*time))
	}
	if r.Note != "" {
		term.Remark(w, "note", r.Note)
	}
	term.Remarks(w, "warning", unique(warnings))
	term.Remarks(w, "INVALID", r.Invalid)
}

// requestChange formats a request's change of energy with its interval.
func requestChange(q measure.Request) string {
	text := term.Change(q.Relative)
	if q.Interval != nil {
		text += ", 95 %: " + term.Interval(q.Interval)
	}
	return text
}

// gain describes one step in one line of text. The line begins with the user's gain: speed at the power limit, lower power
// below the limit.
func gain(s measure.WholeStep) string {
	if s.Relative == 0 {
		return ""
	}
	if s.Before.Capped != nil && *s.Before.Capped {
		return fmt.Sprintf("%s: %s tokens/s at the power limit (%s → %s), %s J/token", s.Name(),
			term.Change(s.After.PerSecond/s.Before.PerSecond), rate(s.Before.PerSecond), rate(s.After.PerSecond), term.Change(s.Relative))
	}
	return fmt.Sprintf("%s: %s power (%.0f → %.0f W), %s J/token; %s tokens/s", s.Name(),
		term.Change(s.After.Watts/s.Before.Watts), s.Before.Watts, s.After.Watts, term.Change(s.Relative), rate(s.After.PerSecond))
}

// share formats a share in per cent; "–" for 0, which means unknown.
func share(v float64) string {
	if v == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", 100*v)
}

func shortStep(s measure.WholeStep) string {
	if s.Phase == "decode" {
		return fmt.Sprintf("decode, %d", s.Batch)
	}
	return "prefill"
}

func capped(s measure.WholeStep) string {
	return noteOf(s.Run.Valid, s.Run.OnlyNull(), s.Before.Capped, s.After.Capped)
}

// millijoules formats an energy, given in joules, as millijoules with three digits.
func millijoules(v float64) string {
	if v >= 1 {
		return fmt.Sprintf("%.0f", 1e3*v)
	}
	return fmt.Sprintf("%.3g", 1e3*v)
}

// rate formats tokens per second with three digits.
func rate(v float64) string {
	if v < 1000 {
		return fmt.Sprintf("%.3g", v)
	}
	return term.Count(int(v+50) / 100 * 100)
}

func unique(list []string) (all []string) {
	seen := map[string]bool{}
	for _, text := range list {
		if !seen[text] {
			all = append(all, text)
		}
		seen[text] = true
	}
	return all
}
