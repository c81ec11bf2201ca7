// Package probe holds the measurements that a calibration of the cost model is fitted to. Its patterns separate the
// effects that the operands' bits have on a GPU's datapath.
//
// Patterns come in families, such as repeated rows or blocks of zeros. A model is tested on families that are left
// out of its fit.
package probe

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
)

// family is a family of patterns of w. In a pattern, σ is the usual standard deviation of the type, and B stands for
// normal(0,σ). A pattern with ! is in the long list only; a pattern with * is in all three lists.
type family struct {
	name     string
	patterns []string
}

var families = []family{
	{"constant", []string{"*zeros", "*const(σ)", "!const(1.5σ)", "set(1, B)"}},
	{"few values", []string{"set(2, B)", "set(4, B)", "!set(16, B)", "!set(64, B)"}},
	{"rows", []string{"*B | repeat(rows=8192)", "B | repeat(rows=64)", "!B | repeat(rows=8)", "*B | repeat(rows=4)", "!B | repeat(rows=2)", "B | cycle(rows=2)", "!B | cycle(rows=4)", "!B | cycle(rows=8)"}},
	{"columns", []string{"*B | repeat(columns=8192)", "!B | repeat(columns=16)", "B | repeat(columns=4)", "!B | repeat(columns=2)", "B | cycle(columns=2)", "!B | cycle(columns=16)"}},
	{"signs", []string{"B | abs", "*const(σ) | signs(random)", "!set(1, B) | signs(random)", "!B | signs(rows)"}},
	{"round", []string{"*B | round(7)", "!B | round(6)", "!B | round(5)", "*B | round(4)", "!B | round(3)", "!B | round(2)", "!B | zero(low=4)"}},
	{"grid", []string{"!B | grid(16)", "*B | grid(8)", "!B | grid(4)", "B | grid(2)", "!B | grid(1)"}},
	{"sparse", []string{"!B | sparse(0.1)", "B | sparse(0.25)", "*B | sparse(0.5)", "!B | sparse(0.75)", "B | sparse(0.9)"}},
	{"blocks", []string{"*B | sparse(0.5, block=64x64)", "!B | sparse(0.5, block=8x8)", "!B | sparse(0.5, block=2x2)", "B | sparse(0.5, block=1x64)", "B | sparse(0.5, block=64x1)", "!B | sparse(0.5, block=1x16)", "!B | sparse(0.5, block=16x1)"}},
	{"sort", []string{"*B | sort", "!B | sort(0.5)", "B | sort(by=columns)", "B | sort(by=within)"}},
	{"shift", []string{"*B | shift(4σ)", "!B | shift(8σ)", "!B | shift(2σ)", "B | shift(1σ)", "!B | shift(0.5σ)"}},
	{"spread", []string{"!uniform(-1σ, 1σ)", "!uniform(1σ, 2σ)", "!normal(0, 0.25σ)"}},
	{"mixed", []string{"B | round(4) | sparse(0.5)", "!B | grid(4) | sparse(0.25, block=8x8)", "!B | abs | round(4)", "!B | shift(4σ) | round(4)", "B | repeat(rows=4) | sparse(0.5)", "!B | round(4) | reorder(rows)"}},
	{"bits", []string{"const(σ) | random(low=4)", "!const(σ) | random(low=2)", "!B | random(low=4)", "!const(σ) | flip(0.05)"}},
}

func (l length) has(text string) bool {
	switch text[0] {
	case '!':
		return l == long
	case '*':
		return true
	}
	return l != few
}

// job lists the points of a setup in which only the weights change: one for each pattern in the list l.
func job(s experiment.Setup, l length) (experiment.Job, error) {
	sigma := cost.RandomSigma(s.Type.Operand())
	parse := func(text string) (pattern.Pattern, error) {
		return pattern.Parse(scaled(strings.ReplaceAll(strings.TrimLeft(text, "!*"), "B", "normal(0,σ)"), sigma))
	}
	base, err := parse("B")
	if err != nil {
		return experiment.Job{}, err
	}
	w := experiment.Job{Setup: s, Baseline: experiment.Point{Experiment: "baseline", X: base, W: base, Seed: 1}}
	for _, f := range families {
		for i, text := range f.patterns {
			if !l.has(text) {
				continue
			}
			p, err := parse(text)
			if err != nil {
				return w, fmt.Errorf("family %s: %w", f.name, err)
			}
			w.Points = append(w.Points, experiment.Point{Experiment: f.name, At: float64(i), X: base, W: p, Seed: 1})
		}
	}
	return w, nil
}

// scaled replaces multiples of σ, such as 1.5σ, by numbers.
func scaled(text string, sigma float64) string {
	return number.ReplaceAllStringFunc(text, func(s string) string {
		factor := 1.0
		if n := strings.TrimSuffix(s, "σ"); n != "" {
			factor, _ = strconv.ParseFloat(n, 64) // the expression lets nothing else through
		}
		return strconv.FormatFloat(factor*sigma, 'g', -1, 64)
	})
}

var number = regexp.MustCompile(`-?[0-9]*\.?[0-9]*σ`)
