package sweep

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Setting is what a card is held to. A field that is 0 is as the sweep found it, or no lock.
type Setting struct {
	Cap   float64 `json:"cap_watts,omitempty"` // the power limit
	Clock float64 `json:"clock_mhz,omitempty"` // the multiprocessors' clock is locked there
}

// String is for tables: "500 W", "1200 MHz".
func (s Setting) String() string {
	switch {
	case s.Cap != 0 && s.Clock != 0:
		return fmt.Sprintf("%g W and %g MHz", s.Cap, s.Clock)
	case s.Clock != 0:
		return fmt.Sprintf("%g MHz", s.Clock)
	case s.Cap != 0:
		return fmt.Sprintf("%g W", s.Cap)
	}
	return "as found"
}

// Caps are steps of power limits from the lowest to the highest, in tens of watts.
func Caps(low, high float64, steps int) []Setting {
	var all []Setting
	for i := range steps {
		v := low + (high-low)*float64(i)/float64(max(1, steps-1))
		if i > 0 && i < steps-1 {
			v = math.Round(v/10) * 10
		}
		if s := (Setting{Cap: v}); !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// Order of visits: all settings but the reference at random, and the reference at the beginning, in the
// middle and at the end.
func Order(reference Setting, settings []Setting, seed uint64) []Setting {
	rest := slices.DeleteFunc(slices.Clone(settings), func(s Setting) bool { return s == reference })
	rand.New(rand.NewPCG(seed, 7)).Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	half := (len(rest) + 1) / 2
	return slices.Concat([]Setting{reference}, rest[:half], []Setting{reference}, rest[half:], []Setting{reference})
}
