package cli

import (
	"fmt"
	"io"
	"sort"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/verify"
	"github.com/lowtoggle/lowtoggle/weights"
)

var verifyCommand = &cli.Command{
	Name:      "verify",
	Usage:     "look at a converted model again: what was kept, what was spent",
	ArgsUsage: "MODEL OUT",
	Description: "Reads the two folders and trusts nothing else. Exit status 3 where the output does not keep\n" +
		"what its manifest claims.",
	Flags: flags([]cli.Flag{&cli.BoolFlag{Name: "tensors", Usage: "a row for every tensor"}, workloadFlag, roleFlag, archFlag}, commonFlags),
	Action: func(c *cli.Context) error {
		args, err := arguments(c, "MODEL", "OUT")
		if err != nil {
			return err
		}
		src, err := weights.Open(args[0])
		if err != nil {
			return err
		}
		defer src.Close()
		out, err := weights.Open(args[1])
		if err != nil {
			return err
		}
		defer out.Close()
		r, err := verifyModels(c, src, out)
		if err != nil {
			return err
		}
		if c.Bool("json") {
			err = printJSON(c.App.Writer, r)
		} else {
			r.print(c.App.Writer, c.Bool("tensors"))
		}
		if err == nil && !r.OK {
			err = errShort
		}
		return err
	},
}

// verifyJSON is what verify --json prints.
type verifyJSON struct {
	*verify.Report
	Energy *energyJSON `json:"energy,omitempty"`

	workload cost.Workload
	role     cost.Role
}

type energyJSON struct {
	Predicted *ratio `json:"predicted,omitempty"`
}

// verifyModels compares and predicts, with progress.
func verifyModels(c *cli.Context, src, out *weights.Model) (*verifyJSON, error) {
	w, role, err := workload(c)
	if err != nil {
		return nil, err
	}
	n, err := workers(c)
	if err != nil {
		return nil, err
	}
	fam, err := family(c)
	if err != nil {
		return nil, err
	}
	event, end := newProgress(c)
	defer end()
	rep, err := verify.Models(c.Context, src, out, verify.Options{Family: fam, Workers: n, Progress: event})
	if err != nil {
		return nil, err
	}
	r := &verifyJSON{Report: rep, workload: w, role: role}
	layout, _, _ := transform.Resolve(src, fam)
	var total ratio
	for _, t := range rep.Tensors {
		if !t.Linear {
			continue
		}
		a, _ := src.Tensor(t.Name)
		b, _ := out.Tensor(t.Name)
		outAxis := 0
		if layout != nil && layout.Claims[t.Name] != nil {
			outAxis = layout.Claims[t.Name].OutAxis
		}
		before, err := cost.Measure(c.Context, a, n)
		if err != nil {
			return nil, err
		}
		after, err := cost.Measure(c.Context, b, n)
		if err != nil {
			return nil, err
		}
		total.add(a.Len(), predictor.Energy(before, outAxis, role, w), predictor.Energy(after, outAxis, role, w))
	}
	if k := total.known(); k != nil {
		r.Energy = &energyJSON{k}
	}
	return r, nil
}

// print shows the finding, a row per kind of tensor or per tensor.
func (r *verifyJSON) print(w io.Writer, each bool) {
	type group struct {
		tensors, bits int
		classes       map[verify.Class]int
		snr           *float64
		moved         string
	}
	groups := map[string]*group{}
	var order []string
	for _, t := range r.Tensors {
		kind := t.Name
		if !each {
			kind = t.Kind
			if kind == "" {
				kind = kindOf(nil, t.Name)
			}
		}
		g := groups[kind]
		if g == nil {
			g = &group{classes: map[verify.Class]int{}, bits: t.BitsZeroed}
			groups[kind] = g
			order = append(order, kind)
		}
		g.tensors++
		g.classes[t.Class]++
		g.bits = min(g.bits, t.BitsZeroed)
		if t.SNR != nil && (g.snr == nil || *t.SNR < *g.snr) {
			g.snr = t.SNR
		}
		if s := relation(t.Relation); s != "" {
			g.moved = s
		}
	}
	if !each {
		sort.Strings(order)
	}
	tab := newTable("tensors", "n", "class", "lowest SNR", "bits zeroed", "moved")
	for _, kind := range order {
		g := groups[kind]
		bits := "–"
		if g.bits > 0 {
			bits = fmt.Sprint(g.bits)
		}
		tab.add(kind, count(g.tensors), classes(g.classes), decibels(g.snr), bits, g.moved)
	}
	tab.print(w)
	fmt.Fprintln(w)
	if r.Energy != nil {
		e := r.Energy.Predicted
		fmt.Fprintf(w, "energy of all layers for %s, weights %s: %s predicted, between %s and %s\n(%s)\n", r.workload, r.role,
			percent(e.Relative), percent(e.Interval[0]), percent(e.Interval[1]), e.Calibration)
	}
	if !r.DropIn {
		fmt.Fprintln(w, "NOT DROP-IN: a runtime must apply the stored shifts (tensors *"+transform.ShiftSuffix+")")
	}
	for _, p := range r.Problems {
		fmt.Fprintf(w, "problem: %s\n", p)
	}
	for _, t := range r.Tensors {
		if t.Problem != "" {
			fmt.Fprintf(w, "problem: %s: %s\n", t.Name, t.Problem)
		}
	}
	if r.OK {
		fmt.Fprintln(w, "ok: every tensor is what the manifest says")
	} else {
		fmt.Fprintln(w, "NOT OK: the output does not keep what its manifest claims")
	}
}

func classes(n map[verify.Class]int) string {
	var parts []string
	for _, c := range []verify.Class{verify.Identical, verify.Exact, verify.Compensated, verify.Lossy, verify.Untouched} {
		if n[c] > 0 {
			parts = append(parts, string(c))
		}
	}
	return strings.Join(parts, ", ")
}

// relation says in a few words what an exact image moves.
func relation(r *verify.Relation) string {
	if r == nil {
		return ""
	}
	var parts []string
	both := func(what string, rows, cols int) {
		switch {
		case rows > 0 && cols > 0:
			parts = append(parts, what+" rows, columns")
		case rows > 0:
			parts = append(parts, what+" rows")
		case cols > 0:
			parts = append(parts, what+" columns")
		}
	}
	both("permuted", r.RowsMoved, r.ColsMoved)
	both("signs of", r.RowsFlipped, r.ColsFlipped)
	both("2^k on", r.RowsScaled, r.ColsScaled)
	return strings.Join(parts, "; ")
}
