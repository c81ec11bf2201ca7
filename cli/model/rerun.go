package model

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/printable"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

var forceFlag = &cli.BoolFlag{Name: "force", Usage: "replace OUT if lowtoggle made it and its files are unchanged", DisableDefaultText: true}

// standing looks at OUT before a conversion. It returns the manifest if OUT is the finished result of the requested
// conversion. With --force, it returns the folder to replace. If OUT is free, both results are nil. All other content
// of OUT is an error.
func standing(c *cli.Context, m *weights.Model, out string, o transform.Options) (*plan.Manifest, *apply.Made, error) {
	if weights.IsURL(out) {
		man, err := standingInStore(c, m, out, o)
		return man, nil, err
	}
	if isModel(m, out) {
		return nil, nil, exit.OutputExists(weights.FileErrorf(out, "is the source itself: name a new folder"))
	}
	if c.Bool("force") {
		if err := apply.FinishReplacing(out); err != nil {
			return nil, nil, err
		}
	}
	info, err := os.Lstat(out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if entries, err := os.ReadDir(out); err == nil && info.IsDir() && len(entries) == 0 {
		return nil, nil, nil
	}
	man, err := plan.ReadManifest(out)
	different := ""
	if err == nil {
		if different, err = differs(c, m, out, man, o); err != nil {
			return nil, nil, err
		}
	}
	if !c.Bool("force") {
		switch {
		case err != nil:
			text := "exists already: choose a new folder"
			if info.IsDir() {
				text = "exists already and is not empty: choose a new or an empty folder"
			}
			return nil, nil, exit.OutputExists(weights.FileErrorf(out, "%s", text))
		case different != "":
			return nil, nil, exit.OutputReplaceable(weights.FileErrorf(out, "exists already, and %s: choose a new folder, or replace this one (--force)", different))
		}
	}
	made, err := openMade(c, out, o)
	if err != nil {
		return nil, nil, err
	}
	changed := error(nil)
	if different == "" {
		changed = made.SameSource(c.Context, m, o.Workers, o.Progress)
	}
	switch {
	case different == "" && changed == nil:
		return made.Manifest, nil, nil
	case !c.Bool("force"):
		return nil, nil, fmt.Errorf("%w: choose a new folder, or replace the old one (--force)", changed)
	case c.Context.Err() != nil:
		return nil, nil, c.Context.Err()
	}
	return nil, made, nil
}

// isConversion reports whether a folder on a disk has a conversion's manifest.
func isConversion(out string) bool {
	_, err := plan.ReadManifest(out)
	return err == nil
}

// openMade opens a finished conversion whose files are unchanged.
func openMade(c *cli.Context, out string, o transform.Options) (*apply.Made, error) {
	made, err := apply.OpenMade(c.Context, out, o.Workers, o.Progress)
	if info, unread := os.Lstat(strings.TrimRight(out, "/")); errors.Is(err, apply.ErrNotMade) && unread == nil && info.Mode()&fs.ModeSymlink == 0 {
		err = fmt.Errorf("%w: choose a new folder, or remove this one yourself", err)
	}
	return made, err
}

// isModel reports whether a path is a model's own file or folder.
func isModel(m *weights.Model, path string) bool {
	own := m.Dir
	if m.Single && len(m.Shards) > 0 {
		own = m.Shards[0].Path
	}
	if weights.IsURL(path) || !m.OnDisk() {
		return strings.TrimRight(path, "/") == strings.TrimRight(own, "/")
	}
	a, err := os.Stat(path)
	if err != nil {
		return false
	}
	b, err := os.Stat(own)
	return err == nil && os.SameFile(a, b)
}

// standingInStore is standing for a bucket. Folders in a bucket are never replaced.
func standingInStore(c *cli.Context, m *weights.Model, out string, o transform.Options) (*plan.Manifest, error) {
	if c.Bool("force") {
		return nil, exit.Usagef("--force only replaces folders on a disk: remove %s with the store's own tools, or name a new folder", out)
	}
	_, folder, err := flag.Place(out)
	if err != nil {
		return nil, err
	}
	man, err := apply.Finished(c.Context, folder, m)
	if err != nil || man == nil {
		return nil, err
	}
	different, err := differs(c, m, out, man, o)
	if err == nil && different != "" {
		err = exit.OutputExists(weights.FileErrorf(out, "exists already, and %s: choose a new folder", different))
	}
	return man, err
}

// differs describes how the finished conversion in out differs from the requested one; empty if they are equal. With
// --resume, options that are not given are those of the finished conversion.
func differs(c *cli.Context, m *weights.Model, out string, man *plan.Manifest, o transform.Options) (string, error) {
	if err := man.Plan.CheckModel(m); err != nil {
		return "was made from another model", nil
	}
	resumed := c.Bool("resume") && !c.Bool("force")
	asked := man.Asked()
	if a, b := strings.Join(asked.Keep, ","), strings.Join(splitPatterns(c.String("keep")), ","); a != b && !(resumed && !c.IsSet("keep")) {
		return fmt.Sprintf("was made with another --keep (then %s, now %s)", orNone(a), orNone(b)), nil
	}
	if a, b := asked.BaseModel, c.String("base-model"); a != b && !(resumed && !c.IsSet("base-model")) {
		return fmt.Sprintf("was made with another --base-model (then %s, now %s)", orNone(a), orNone(b)), nil
	}
	if path := c.String("plan"); path != "" {
		p, err := givenPlan(c, path)
		if err != nil {
			return "", err
		}
		if samePlan(out, man.Plan, p) != nil {
			return "was made with another plan", nil
		}
		return "", nil
	}
	if resumed && !slices.ContainsFunc(requestFlags, c.IsSet) {
		return "", nil
	}
	was, now := man.Plan.Request, requestOf(m, o)
	if spell(was) != spell(now) {
		return fmt.Sprintf("was made with other options (then %s, now %s)", withRecipe(m, o, was), askedNow(c, m, o)), nil
	}
	if o.Family != nil && was.Arch != o.Family.Digest || o.Family == nil && was.Arch != "" {
		return "was made with another family (--arch)", nil
	}
	routers := slices.ContainsFunc(man.Plan.Steps, func(s *plan.Step) bool { return arch.IsRouter(s.Tensor) })
	if was.KeepRouters && !o.KeepRouters || routers && o.KeepRouters {
		return "treats routers differently", nil
	}
	if was.TrustFamily != (o.TrustFamily && arch.CustomCode(m.Config) != "") {
		return "treats the model's own code differently (--trust-family)", nil
	}
	key := ""
	if o.Tokens != nil && was.Hessians != "" {
		key = o.Tokens.Key()
	}
	if key != was.Hessians || (was.Device != "") != c.IsSet("device") {
		return "was made with other tokens, or on another device", nil
	}
	if o.Reference != nil && was.Format == "" {
		fp, err := plan.Fingerprint(o.Reference)
		if err != nil {
			return "", err
		}
		now.Reference = fp.SHA256
	}
	if now.Reference != was.Reference {
		return "was made with another reference", nil
	}
	if k, ok := o.Cost.(*cost.Calibration); ok && slices.ContainsFunc(man.Plan.Predictions, func(p plan.Prediction) bool {
		return p.After != nil && !strings.HasPrefix(p.After.Calibration, k.Card)
	}) {
		return "was made with predictions of another calibration", nil
	}
	return "", nil
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return printable.Quote(text)
}

// requestOf returns the request of a plan with these options, except the fields that are derived from tokens.
func requestOf(m *weights.Model, o transform.Options) plan.Request {
	r := plan.Request{Format: formatName(m, o), MinSNR: o.Budget.MinSNR, MaxLoss: o.Budget.MaxLoss, Workload: o.Workload, Role: o.Role, Seed: o.Seed, SearchSeconds: o.Search.Time.Seconds(), Selection: o.Selection}
	for _, p := range o.Passes {
		r.Passes = append(r.Passes, p.String())
	}
	return r
}

// unchanged returns an error with [exit.ErrShort] if the conversion changed no weight; nil otherwise.
func unchanged(r *transform.Conversion, out string) error {
	for _, s := range r.Manifest.Shards {
		if s.Source != s.Output {
			return nil
		}
	}
	passes := "the passes "
	if len(r.Plan.Request.Passes) == 1 {
		passes = "the pass "
	}
	why := passes + strings.Join(r.Plan.Request.Passes, ", ") + " found no change that saves energy; try other passes, or --recipe balanced"
	linear, excluded := excludedLayers(r.Plan)
	switch {
	case linear == 0:
		why = "no tensor was recognised as a linear layer that the passes could change; describe the architecture with --arch FILE"
	case excluded == linear:
		why = allExcluded(linear)
	case !r.Plan.Request.Selection.Empty():
		why += "; or change --ignore, --only or the recipe's lists, which leave layers out"
	}
	return fmt.Errorf("%w: no weight was changed, and %s is a copy: %s", exit.ErrShort, out, why)
}

// allExcluded says that the patterns exclude all of a model's linear layers.
func allExcluded(linear int) string {
	if linear == 1 {
		return "--ignore, --only or the recipe's lists exclude the only linear layer: include this layer"
	}
	return fmt.Sprintf("--ignore, --only or the recipe's lists exclude all %s linear layers: include at least one", term.Count(linear))
}

// excludedLayers counts a plan's linear layers, and those that its request's selection excludes.
func excludedLayers(p *plan.Plan) (linear, excluded int) {
	selector, err := p.Request.Selection.Selector() // the patterns were checked before
	for _, layer := range p.Predictions {
		if !layer.Linear {
			continue
		}
		linear++
		if err == nil && selector.Leaves(layer.Tensor) {
			excluded++
		}
	}
	return linear, excluded
}
