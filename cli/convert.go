package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
)

var convertCommand = &cli.Command{
	Name:      "convert",
	Usage:     "plan and write a model whose products toggle less",
	ArgsUsage: "MODEL OUT",
	Description: "OUT appears whole or not at all. After an interruption, the same command with --resume\n" +
		"goes on where it stopped and ends with the same bytes.",
	Flags: flags([]cli.Flag{
		&cli.StringFlag{Name: "plan", Usage: "carry out the plan in `FILE` instead of making one"},
		&cli.BoolFlag{Name: "resume", Usage: "go on with an interrupted conversion"},
	}, planFlags, commonFlags),
	Action: func(c *cli.Context) error {
		args, err := arguments(c, "MODEL", "OUT")
		if err != nil {
			return err
		}
		m, err := weights.Open(args[0])
		if err != nil {
			return err
		}
		defer m.Close()
		start := time.Now()
		man, err := convert(c, m, args[1])
		if err != nil {
			return err
		}
		if c.Bool("json") {
			if err := printJSON(c.App.Writer, convertReport(m, man, args[1], time.Since(start))); err != nil {
				return err
			}
		} else {
			printPlan(c.App.Writer, m, man.Plan, layoutOf(c, m))
			fmt.Fprintf(c.App.Writer, "\n%s (%s) written in %.1f s; check it with: lowtoggle verify %s %s\n",
				args[1], size(m.Size()), time.Since(start).Seconds(), args[0], args[1])
		}
		return missed(man.Plan)
	},
}

// convertJSON is what convert --json prints.
type convertJSON struct {
	Output    string                  `json:"output"`
	DropIn    bool                    `json:"drop_in"`
	Bytes     int64                   `json:"bytes"`
	Seconds   float64                 `json:"seconds"`
	Shards    []transform.ShardRecord `json:"shards"`
	Predicted *ratio                  `json:"predicted,omitempty"`
	Tensors   []transform.Outlook     `json:"tensors"`
	Notes     []string                `json:"notes,omitempty"`
}

func convertReport(m *weights.Model, man *transform.Manifest, out string, took time.Duration) convertJSON {
	elements := map[string]int{}
	for _, info := range m.Infos() {
		elements[info.Name] = info.Len()
	}
	return convertJSON{out, man.DropIn, m.Size(), took.Seconds(), man.Shards,
		outlookRatio(man.Plan, elements), man.Plan.Outlook, man.Plan.Notes}
}

// convert finds or makes the plan and carries it out.
func convert(c *cli.Context, m *weights.Model, out string) (*transform.Manifest, error) {
	o, err := planOptions(c)
	if err != nil {
		return nil, err
	}
	apply := transform.ApplyOptions{Family: o.Family, Workers: o.Workers, Resume: c.Bool("resume")}
	if apply.Resume {
		if man, err := finished(m, out); man != nil || err != nil {
			return man, err
		}
	}
	if err := transform.CheckOut(m, out, apply.Resume); err != nil {
		return nil, err
	}
	plan, err := findPlan(c, m, out, o)
	if err != nil {
		return nil, err
	}
	event, end := newProgress(c)
	defer end()
	apply.Progress = event
	return transform.Apply(c.Context, m, plan, out, apply)
}

// finished is the manifest of a conversion that had come to its end before it was to be resumed;
// nil where there is no such output.
func finished(m *weights.Model, out string) (*transform.Manifest, error) {
	if _, err := os.Lstat(out); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	man, err := transform.ReadManifest(out)
	if err != nil {
		return nil, fmt.Errorf("%s: exists already, and is no finished conversion: %w", out, err)
	}
	return man, man.Plan.CheckModel(m)
}

// findPlan reads the plan that --plan names or that the interrupted conversion had, or makes one.
func findPlan(c *cli.Context, m *weights.Model, out string, o transform.Options) (*transform.Plan, error) {
	if path := c.String("plan"); path != "" {
		for _, f := range []string{"passes", "recipe", "min-snr"} {
			if c.IsSet(f) {
				return nil, usagef("--plan and --%s exclude each other: the plan says what to do", f)
			}
		}
		return transform.ReadPlan(path)
	}
	if c.Bool("resume") {
		plan, err := transform.Unfinished(out)
		if err != nil {
			return nil, err
		}
		if plan != nil {
			return plan, sameRequest(c, plan.Request, o)
		}
	}
	return planWith(c, m, o)
}

// sameRequest refuses to go on with a plan that was made for something else than is asked for now.
func sameRequest(c *cli.Context, was transform.Request, o transform.Options) error {
	asked := c.IsSet("passes") || c.IsSet("recipe") || c.IsSet("min-snr") || c.IsSet("workload") || c.IsSet("role") || c.IsSet("seed")
	if !asked {
		return nil
	}
	var passes []string
	for _, p := range o.Passes {
		passes = append(passes, p.String())
	}
	sameSNR := (was.MinSNR == nil) == (o.MinSNR == nil) && (o.MinSNR == nil || *was.MinSNR == *o.MinSNR)
	if !slices.Equal(passes, was.Passes) || !sameSNR || was.Workload != o.Workload || was.Role != o.Role || was.Seed != o.Seed {
		return usagef("--resume: the interrupted conversion was planned with --passes %v for %s, %s; leave these flags out to go on with it, or remove it",
			was.Passes, was.Workload, was.Role)
	}
	return nil
}
