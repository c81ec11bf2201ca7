package testmodel

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var limitsOfFact = regexp.MustCompile(`^facts\.(\S+) is \S+: it must be from (\S+) to (\S+)$`)

// FactLimits gives every number among facts a value below and one above all limits, and returns the errors, sorted. An error that names
// the number must state limits that are valid themselves, while the next value beyond them is not. whole reports whether the number at a
// path such as "kernels.tile_tokens" is an integer.
func FactLimits[F any](t TB, facts F, whole func(path string) bool, validate func(F) error) (lines []string) {
	t.Helper()
	OK(t, validate(facts))
	with := func(path string, v float64, try func(F)) {
		change := func(name string, was float64) float64 {
			if path != "" && !strings.HasSuffix(path, name) {
				return was
			}
			return v
		}
		EachNumber(t, facts, change, func(what string, changed F) {
			if of, _, _ := strings.Cut(strings.TrimPrefix(what, "facts."), " = "); of == path || path == "" {
				try(changed)
			}
		})
	}
	for _, v := range []float64{-1 << 50, 1 << 50} {
		with("", v, func(changed F) {
			err := validate(changed)
			if err == nil {
				t.Fatalf("facts with a number of %v are accepted: %+v", v, changed)
				return
			}
			lines = append(lines, strings.TrimPrefix(err.Error(), "facts."))
		})
	}
	slices.Sort(lines)
	lines = slices.Compact(lines)
	for _, line := range lines {
		m := limitsOfFact.FindStringSubmatch("facts." + line)
		if m == nil {
			continue
		}
		path := m[1]
		for end, text := range m[2:] {
			limit, err := strconv.ParseFloat(text, 64)
			OK(t, err)
			beyond := math.Nextafter(limit, math.Inf(2*end-1))
			if whole(path) {
				beyond = limit + float64(2*end-1)
			}
			for value, fits := range map[float64]bool{limit: true, beyond: false} {
				with(path, value, func(changed F) {
					err := validate(changed)
					if refused := err != nil && strings.HasPrefix(err.Error(), "facts."+path+" is "); refused == fits {
						t.Fatalf("%s = %v: %v", path, value, err)
					}
				})
			}
		}
	}
	return lines
}
