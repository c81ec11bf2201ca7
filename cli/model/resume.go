package model

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// requestFlags are the flags whose values a plan records.
var requestFlags = []string{"format", "passes", "recipe", "ignore", "only", "trust-family", "min-snr", "max-loss", "workload", "role", "seed", "gpu", "calibration"}

// findPlan reads the plan of --plan, or of the interrupted conversion; nil if there is none.
func findPlan(c *cli.Context, m *weights.Model, out string, o transform.Options) (*plan.Plan, error) {
	if path := c.String("plan"); path != "" {
		return givenPlan(c, path)
	}
	if c.Bool("resume") {
		p, err := unfinished(c, out)
		if err != nil {
			return nil, err
		}
		if p != nil {
			return p, sameRequest(c, m, p.Request, o)
		}
		if o.Tokens == nil && transform.HasSearch(besideOut(out)) {
			return nil, exit.Usagef("--resume: the search for a plan was interrupted: give --tokens, --max-loss and all other flags as before "+
				"to continue; or remove %s", besideOut(out))
		}
	}
	return nil, nil
}

// unfinished returns the plan of an interrupted conversion; nil if there is none.
func unfinished(c *cli.Context, out string) (*plan.Plan, error) {
	_, folder, err := flag.Place(out)
	if err != nil || folder == nil {
		return transform.Unfinished(out)
	}
	return apply.UnfinishedIn(c.Context, folder)
}

// givenPlan reads the plan of --plan. It returns an error if other flags ask for another plan.
func givenPlan(c *cli.Context, path string) (*plan.Plan, error) {
	for _, f := range requestFlags {
		if c.IsSet(f) {
			return nil, exit.Usagef("--plan and --%s exclude each other, because the plan already decides all changes: leave one of them out", f)
		}
	}
	var p *plan.Plan
	js, err := flag.ReadPlace(c.Context, path, bounded.Plan)
	if err == nil {
		p, err = transform.Passes.DecodePlan(path, js)
	}
	if flag.IsAbsent(err) {
		return nil, noPlan(path)
	}
	return p, err
}

// noPlan is the path of a plan that does not exist.
type noPlan string

func (path noPlan) Error() string {
	return fmt.Sprintf("--plan %s: there is no such file: name one that lowtoggle plan has written, or a conversion's lowtoggle.json", string(path))
}

func (path noPlan) Unwrap() error {
	return &fs.PathError{Op: "open", Path: string(path), Err: fs.ErrNotExist}
}

// finished returns the manifest if --resume finds a finished conversion; nil if there is no output.
func finished(c *cli.Context, m *weights.Model, out string, o transform.Options) (*plan.Manifest, error) {
	if _, err := os.Lstat(out); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	man, err := plan.ReadManifest(out)
	if err != nil {
		return nil, exit.OutputExists(weights.FileErrorf(out, "exists already, and is not a finished conversion: %w", err))
	}
	if err := man.Plan.CheckModel(m); err != nil {
		return nil, exit.OutputExists(weights.FileErrorf(out, "exists already: %w", err))
	}
	path := c.String("plan")
	if path == "" {
		return man, sameRequest(c, m, man.Plan.Request, o)
	}
	p, err := givenPlan(c, path)
	if err != nil {
		return nil, err
	}
	return man, samePlan(out, man.Plan, p)
}

func samePlan(out string, was, now *plan.Plan) error {
	a, err := was.Plain()
	if err != nil {
		return err
	}
	b, err := now.Plain()
	if err == nil && string(a) != string(b) {
		err = exit.OutputExists(weights.FileErrorf(out, "was made with another plan: name a new folder"))
	}
	return err
}

// sameRequest returns an error if the interrupted plan was made for another request. Without any request flag, every
// interrupted plan is accepted.
func sameRequest(c *cli.Context, m *weights.Model, was plan.Request, o transform.Options) error {
	if !slices.ContainsFunc(requestFlags, c.IsSet) {
		return nil
	}
	if a, b := spell(was), spell(requestOf(m, o)); a != b {
		return exit.Usagef("--resume: the interrupted conversion had other flags; leave all flags out to continue it, or give the same\n"+
			"  then: %s\n  now:  %s", a, b)
	}
	return nil
}

// spell formats a request as command-line flags.
func spell(r plan.Request) string {
	s := "--passes " + strings.Join(r.Passes, ",")
	if r.Format != "" {
		s = "--format " + r.Format + " " + s
	}
	if len(r.Ignore) > 0 {
		s += " --ignore " + term.Words(strings.Join(r.Ignore, ","))
	}
	if len(r.Only) > 0 {
		s += " --only " + term.Words(strings.Join(r.Only, ","))
	}
	if r.MinSNR != nil {
		s += fmt.Sprintf(" --min-snr %v", *r.MinSNR)
	}
	if r.MaxLoss != nil {
		s += fmt.Sprintf(" --max-loss %.6g%%", 100*math.Expm1(*r.MaxLoss))
	}
	if r.SearchSeconds > 0 {
		s += fmt.Sprintf(" --search-time %v", time.Duration(r.SearchSeconds*float64(time.Second)))
	}
	return s + fmt.Sprintf(" --workload %s --role %s --seed %d", r.Workload, r.Role, r.Seed)
}
