package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
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
		if p != nil && p.CheckModel(m) != nil {
			return nil, exit.OutputExists(weights.FileErrorf(strings.TrimRight(out, "/")+".partial", "holds an unfinished conversion of another model: move it away to start anew, or give the model that it was begun with"))
		}
		if p != nil {
			return p, sameRequest(c, m, p.Request, o)
		}
		if o.Tokens == nil && transform.HasSearch(besideOut(out)) {
			return nil, exit.Usagef("--resume: planning was interrupted: give --tokens and all other flags as before to continue, or remove %s to start anew", besideOut(out))
		}
		if !transform.HasSearch(besideOut(out)) {
			term.Notice(c, "--resume: there is nothing to continue for %s, so the conversion starts anew", out)
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
		switch p, err = transform.Passes.DecodePlan(path, js); {
		case errors.Is(err, plan.ErrInvalid) && isNoPlan(js):
			err = fmt.Errorf("%w: the file is no plan: name one that lowtoggle plan has written, or a conversion's %s", err, plan.ManifestName)
		case errors.Is(err, plan.ErrInvalid) && strings.Contains(err.Error(), "unknown field"):
			err = fmt.Errorf("%w: give a plan, or a conversion's %s, that this version of lowtoggle has written", err, plan.ManifestName)
		}
	}
	if flag.IsAbsent(err) {
		return nil, noPlan(path)
	}
	if errors.Is(err, bounded.ErrNotFile) {
		err = fmt.Errorf("--plan: %w, such as the plan.json of lowtoggle plan, or a conversion's %s", err, plan.ManifestName)
	}
	return p, err
}

// isNoPlan reports whether a file is no JSON object, or has content without the version of a plan or of a manifest.
// A truncated object may be a plan.
func isNoPlan(js []byte) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(js, &fields) != nil {
		js = bytes.TrimSpace(js)
		return len(js) > 0 && js[0] != '{'
	}
	return len(fields) > 0 && fields["plan_version"] == nil && fields["manifest_version"] == nil
}

// noPlan is the path of a plan that does not exist.
type noPlan string

func (path noPlan) Error() string {
	return fmt.Sprintf("--plan %s: there is no such file: name one that lowtoggle plan has written, or a conversion's lowtoggle.json", string(path))
}

func (path noPlan) Unwrap() error {
	return &fs.PathError{Op: "open", Path: string(path), Err: fs.ErrNotExist}
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
	if spell(was) != spell(requestOf(m, o)) {
		return exit.Usagef("--resume: the interrupted conversion had other flags; to continue, leave these flags out, or give the earlier ones; to start anew, move the unfinished folder (.partial) away\n"+
			"  then: %s\n  now:  %s", withRecipe(m, o, was), askedNow(c, m, o))
	}
	return nil
}

// spell formats a request as command-line flags.
func spell(r plan.Request) string {
	s := "--passes " + strings.Join(r.Passes, ",")
	if len(r.Passes) == 0 {
		s += `""`
	}
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
