package card

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/outfile"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/profile"
	"github.com/lowtoggle/lowtoggle/internal/printable"
)

// measuringFlags are the flags that --from excludes.
var measuringFlags = []string{"w", "x", "shape", "dtype", "role", "interleave", "copy", "collective", "length", "idle", "bursts", "runs", "time", "device", "components", "arch"}

// recomputeProfile recomputes the traces from a file of readings.
func recomputeProfile(c *cli.Context) error {
	for _, name := range measuringFlags {
		if c.IsSet(name) {
			return exit.Usagef("--from measures nothing: leave --%s out", name)
		}
	}
	file := c.String("from")
	text, err := flag.ReadFile(file, "name the output of profile --json --readings")
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	var r profile.Result
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("--from %s: %w: name the output of profile --json --readings", file, err)
	}
	if len(r.Profiles) == 0 {
		return fmt.Errorf("--from %s: the file has no profile: name the output of profile --json --readings, without --collective", file)
	}
	quoteWords(&r)
	q := &profileRequest{resolution: c.Duration("resolution"), picture: c.String("output")}
	q.seed = r.Seed
	if c.IsSet("seed") {
		q.seed = c.Uint64("seed")
	}
	if err := outfile.CheckOutput(q.picture, nil, outfile.Pictures...); err != nil {
		return err
	}
	if err := q.readOptions(c); err != nil {
		return err
	}
	event, end := term.Progress(c)
	event(profile.Event{Stage: "stitch"})
	err = profile.Recompute(c.Context, &r, q.options)
	end()
	if err != nil {
		err = fmt.Errorf("--from %s: %w", file, err)
		orInterrupt(c.Context, &err)
		return err
	}
	report := &profileReport{Result: &r, asked: q.resolution}
	if err := report.write(c); err != nil {
		return err
	}
	if err := report.draw(c, q.picture); err != nil {
		return err
	}
	if !report.met() {
		return exit.ErrShort
	}
	return nil
}

// quoteWords quotes the text fields of a file, because they reach the terminal and the picture.
func quoteWords(r *profile.Result) {
	words := []*string{&r.GPU}
	for i := range r.Products {
		p := &r.Products[i]
		words = append(words, &p.Name, &p.W, &p.X)
	}
	for i := range r.Profiles {
		for j := range r.Profiles[i].Throttle {
			words = append(words, &r.Profiles[i].Throttle[j])
		}
	}
	for i := range r.Warnings {
		words = append(words, &r.Warnings[i])
	}
	for _, w := range words {
		*w = printable.Quote(*w)
	}
}

// orInterrupt replaces an error by the context's error if an interrupt caused it.
func orInterrupt(ctx context.Context, err *error) {
	if *err != nil && ctx.Err() != nil {
		*err = ctx.Err()
	}
}
