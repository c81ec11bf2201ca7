package paper

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
)

// unknown stands for a value that is not known or was not measured.
const unknown = "–"

func or(text string) string { return cmp.Or(text, unknown) }

// percent formats a share in per cent, with its sign.
func percent(v float64) string {
	if math.IsNaN(v) {
		return unknown
	}
	text := fmt.Sprintf("%+.1f", 100*v)
	if text == "-0.0" {
		text = "+0.0"
	}
	return strings.Replace(text, "-", "−", 1)
}

// within formats a ratio with its interval.
func within(v, halfWidth float64) string {
	if math.IsNaN(halfWidth) {
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.3f ± %.3f", v, halfWidth)
}

// seeds names a number of seeds above one.
func seeds(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d seeds)", n)
}

func watts(v *float64) string {
	if v == nil {
		return unknown
	}
	return fmt.Sprintf("%.0f W", *v)
}

// effectCell formats a setup's effect. Effects that contradict the takeaway are bold.
func effectCell(effects []Effect, s experiment.Setup) string {
	i := slices.IndexFunc(effects, func(e Effect) bool { return e.Setup == s })
	if i < 0 {
		return unknown
	}
	text := effects[i].String()
	if effects[i].Outcome == Fails {
		text = "**" + text + "**"
	}
	return text
}

// String formats the change of energy with its interval, the change of power, in per cent, and what was compared.
func (e Effect) String() string {
	text := "power " + percent(e.Power)
	if !math.IsNaN(e.Energy) {
		text = percent(e.Energy)
		switch {
		case math.IsNaN(e.HalfWidth):
		case e.decision.largestOf > 1:
			low, high := e.decision.interval(1)
			text += fmt.Sprintf(" [%s … %s]", percent(low), percent(high))
		default:
			text += fmt.Sprintf(" ± %.1f", 100*e.HalfWidth)
		}
		text += " (" + percent(e.Power) + ")"
	}
	if e.Where != "" {
		text += ", " + e.Where
	}
	return text
}
