package cli

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/gemm/sweep"
)

// mostSettings is as many as a sweep visits.
const mostSettings = 64

// readSettings reads --caps and --clocks.
func readSettings(c *cli.Context) (all []sweep.Setting, err error) {
	for _, f := range []struct {
		name string
		of   func(float64) sweep.Setting
	}{
		{"caps", func(v float64) sweep.Setting { return sweep.Setting{Cap: v} }},
		{"clocks", func(v float64) sweep.Setting { return sweep.Setting{Clock: v} }},
	} {
		if !c.IsSet(f.name) {
			continue
		}
		values, err := steps(f.name, c.String(f.name))
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			if s := f.of(v); !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	if len(all) > mostSettings {
		return nil, usagef("--caps and --clocks name %d settings, and a sweep visits %d at most", len(all), mostSettings)
	}
	return all, nil
}

// steps reads whole numbers between commas, and ranges such as 300..700/50, whose ends belong to them.
func steps(name, text string) (list []float64, err error) {
	wrong := usagef("--%s %s: give whole numbers above 0 (400,500) or a range and its step (300..700/50)", name, cmp.Or(text, "''"))
	number := func(s string) (float64, bool) {
		v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		return v, err == nil && v > 0 && v < 1e5 && v == math.Trunc(v)
	}
	for part := range strings.SplitSeq(text, ",") {
		from, rest, ranged := strings.Cut(part, "..")
		low, ok := number(from)
		if !ok {
			return nil, wrong
		}
		if !ranged {
			list = append(list, low)
			continue
		}
		to, by, stepped := strings.Cut(rest, "/")
		high, ok := number(to)
		step, fine := number(by)
		if !ok || !stepped || !fine || high < low {
			return nil, wrong
		}
		if (high-low)/step > mostSettings {
			return nil, usagef("--%s %s: that is more than %d settings: take a larger step", name, text, mostSettings)
		}
		for i := 0; low+float64(i)*step < high; i++ {
			list = append(list, low+float64(i)*step)
		}
		list = append(list, high)
	}
	return list, nil
}

// readK reads --k.
func readK(text string) (list []float64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || !(v > 1 && v < 1000) {
			return nil, usagef("-k %s: give numbers above 1: the factor of time that saving all energy would just be worth", cmp.Or(text, "''"))
		}
		if slices.Contains(list, v) {
			return nil, usagef("-k %s: %g is given twice", text, v)
		}
		list = append(list, v)
	}
	return list, nil
}
