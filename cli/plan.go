package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

var planCommand = &cli.Command{
	Name:      "plan",
	Usage:     "decide what to do to a model; write the plan and nothing else",
	ArgsUsage: "MODEL",
	Flags: flags([]cli.Flag{&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "plan.json", Usage: "write the plan to `FILE`"}},
		planFlags, commonFlags),
	Action: func(c *cli.Context) error {
		args, err := arguments(c, "MODEL")
		if err != nil {
			return err
		}
		m, err := weights.Open(args[0])
		if err != nil {
			return err
		}
		defer m.Close()
		plan, err := makePlan(c, m)
		if err != nil {
			return err
		}
		js, err := plan.Encode()
		if err != nil {
			return err
		}
		path := c.String("output")
		if err := replaceFile(path, js); err != nil {
			return err
		}
		if c.Bool("json") {
			if _, err := c.App.Writer.Write(js); err != nil {
				return err
			}
		} else {
			printPlan(c.App.Writer, m, plan, layoutOf(c, m))
			fmt.Fprintf(c.App.Writer, "\nplan written to %s; carry it out with: lowtoggle convert %s OUT --plan %s\n", path, args[0], path)
		}
		return missed(plan)
	},
}

// makePlan plans with the command line's options and shows progress.
func makePlan(c *cli.Context, m *weights.Model) (*transform.Plan, error) {
	o, err := planOptions(c)
	if err != nil {
		return nil, err
	}
	return planWith(c, m, o)
}

func planWith(c *cli.Context, m *weights.Model, o transform.Options) (*transform.Plan, error) {
	event, end := newProgress(c)
	defer end()
	o.Progress = event
	return transform.Make(c.Context, m, o)
}

// missed is errShort where part of the request did not fit the budget.
func missed(plan *transform.Plan) error {
	n := 0
	for _, o := range plan.Outlook {
		if o.Missed != "" {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d layers stay as they are, because the passes asked for would put them below the budget", errShort, n)
}

// replaceFile writes a file whole or not at all.
func replaceFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// layoutOf is the model's layout for tables; nil where the family is not known.
func layoutOf(c *cli.Context, m *weights.Model) *arch.Layout {
	fam, err := family(c)
	if err != nil {
		return nil
	}
	layout, _, _ := transform.Resolve(m, fam)
	return layout
}

// layerGroup is the layers of one kind.
type layerGroup struct {
	kind     string
	layers   int
	elements int
	what     map[string]int
	snr      *float64
	ratio    ratio
}

// printPlan shows what a plan does, a row per kind of layer.
func printPlan(w io.Writer, m *weights.Model, plan *transform.Plan, layout *arch.Layout) {
	steps := map[string][]string{}
	exact := map[string]int{}
	for _, s := range plan.Steps {
		if s.Index != "" {
			exact[s.Pass]++
		} else {
			steps[s.Tensor] = append(steps[s.Tensor], describe(s))
		}
	}
	groups := map[string]*layerGroup{}
	var order []string
	elements := map[string]int{}
	for _, o := range plan.Outlook {
		t, _ := m.Tensor(o.Tensor)
		elements[o.Tensor] = t.Len()
		kind := kindOf(layout, o.Tensor)
		g := groups[kind]
		if g == nil {
			g = &layerGroup{kind: kind, what: map[string]int{}}
			groups[kind] = g
			order = append(order, kind)
		}
		g.layers++
		g.elements += t.Len()
		g.what[strings.Join(steps[o.Tensor], " + ")]++
		if o.SNR != nil && (g.snr == nil || *o.SNR < *g.snr) {
			g.snr = o.SNR
		}
		if o.Before != nil && o.After != nil {
			g.ratio.add(t.Len(), *o.Before, *o.After)
		}
	}
	sort.Strings(order)
	tab := newTable("layers", "n", "weights", "lossy or compensated", "lowest SNR", "energy, predicted")
	for _, kind := range order {
		g := groups[kind]
		tab.add(kind, count(g.layers), count(g.elements), mostCommon(g.what), decibels(g.snr), percent(g.ratio.Relative))
	}
	if r := outlookRatio(plan, elements); r != nil {
		tab.add("total", "", "", "", "", percent(r.Relative))
		tab.print(w)
		fmt.Fprintf(w, "\nfor %s, weights %s, predicted between %s and %s\n(%s)\n", plan.Request.Workload, plan.Request.Role,
			percent(r.Interval[0]), percent(r.Interval[1]), r.Calibration)
	} else {
		tab.print(w)
	}
	for _, p := range transform.Passes {
		if n := exact[p.Name]; n > 0 {
			fmt.Fprintf(w, "%s: %s indices\n", p.Name, count(n))
		}
	}
	if !plan.DropIn {
		fmt.Fprintln(w, "NOT DROP-IN: a runtime must apply the stored shifts (tensors *"+transform.ShiftSuffix+")")
	}
	for _, n := range plan.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	for _, o := range plan.Outlook {
		if o.Missed != "" {
			fmt.Fprintf(w, "not done: %s: %s\n", o.Tensor, o.Missed)
		}
	}
}

// describe says in a few characters what a step does.
func describe(s *transform.Step) string {
	switch {
	case s.Round != nil && s.Round.Truncate:
		return fmt.Sprintf("truncate %d bits", s.Round.Zeroed)
	case s.Round != nil:
		return fmt.Sprintf("round %d bits", s.Round.Zeroed)
	case s.Grid != nil && s.Grid.S > 0:
		return fmt.Sprintf("grid σ/%g", s.Grid.S)
	case s.Grid != nil:
		return "grid"
	case s.Zeros != nil:
		return "zero " + s.Zeros.String()
	case s.Shift != nil && s.Shift.Epilogue:
		return "shift (not drop-in)"
	case s.Shift != nil:
		return "shift"
	}
	return s.Pass
}

func mostCommon(what map[string]int) string {
	best, n := "", -1
	for w, c := range what {
		if c > n || c == n && w < best {
			best, n = w, c
		}
	}
	if best == "" {
		best = "–"
	}
	if len(what) > 1 {
		best += " …"
	}
	return best
}

// kindOf is the type of layer that a tensor is: the family's word for it, or its name without
// numbers.
func kindOf(layout *arch.Layout, name string) string {
	if layout != nil && layout.Claims[name] != nil {
		return layout.Claims[name].Kind
	}
	parts := strings.Split(name, ".")
	for i, p := range parts {
		if strings.Trim(p, "0123456789") == "" {
			parts[i] = "N"
		}
	}
	return strings.Join(parts, ".")
}
