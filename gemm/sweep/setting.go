package sweep

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Setting is a power limit and a clock of a card. A Cap of 0 keeps the power limit at its original value. A Clock of 0
// leaves the clock unlocked.
type Setting struct {
	Cap   float64 `json:"cap_watts,omitempty"` // the power limit
	Clock float64 `json:"clock_mhz,omitempty"` // the multiprocessors' locked clock
}

// String returns the setting as in tables, such as "500 W" or "1200 MHz".
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

// MaxSettings is the largest number of settings that [ParseValues] accepts in a range.
const MaxSettings = 64

// ParseValues reads whole numbers above 0 separated by commas ("400,500"), and ranges with a step ("300..700/50"),
// which include both ends.
func ParseValues(text string) (list []float64, err error) {
	wrong := errors.New("give whole numbers above 0, such as 400,500, or a range with a step, such as 300..700/50")
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
		if (high-low)/step > MaxSettings {
			return nil, fmt.Errorf("the range has more than %d settings: give a larger step", MaxSettings)
		}
		for i := 0; low+float64(i)*step < high; i++ {
			list = append(list, low+float64(i)*step)
		}
		list = append(list, high)
	}
	return list, nil
}

// Usual returns 8 power limits from 40 % of the reference, or from the lowest possible limit if that is higher, up to
// the reference. Lower limits cost much time, and predictions for them are unreliable.
func Usual(lowest, reference float64) []Setting {
	return Caps(max(lowest, math.Round(0.04*reference)*10), reference, 8)
}

// Caps returns power limits in equal steps from low to high, rounded to tens of watts.
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

// Order returns the order of visits: the settings in random order, with the reference first, in the middle and last.
func Order(reference Setting, settings []Setting, seed uint64) []Setting {
	rest := slices.DeleteFunc(slices.Clone(settings), func(s Setting) bool { return s == reference })
	rand.New(rand.NewPCG(seed, 7)).Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	half := (len(rest) + 1) / 2
	return slices.Concat([]Setting{reference}, rest[:half], []Setting{reference}, rest[half:], []Setting{reference})
}
