package pattern

import (
	"math"
	"strconv"
	"strings"
)

// parseNumber parses a finite number: in Go's syntax, as a power of two (2^10, 2^-3), or in per cent.
func parseNumber(text string) (float64, bool) {
	if base, exp, power := strings.Cut(text, "^"); power {
		e, err := strconv.Atoi(exp)
		v := math.Ldexp(1, e)
		if base == "-2" {
			v = -v
		}
		return v, err == nil && (base == "2" || base == "-2") && e >= -1074 && e <= 1023
	}
	if share, percent := strings.CutSuffix(text, "%"); percent {
		text = share + "e-2"
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && v-v == 0
}

// formatNumber returns the shortest spelling: decimal, or a power of two if that is shorter.
func formatNumber(v float64) string {
	text := strconv.FormatFloat(v, 'g', -1, 64)
	text = strings.Replace(text, "e+0", "e", 1)
	text = strings.Replace(text, "e-0", "e-", 1)
	text = strings.Replace(text, "e+", "e", 1)
	if fraction, e := math.Frexp(v); fraction == 0.5 || fraction == -0.5 {
		if power := strconv.FormatFloat(fraction*4, 'f', -1, 64) + "^" + strconv.Itoa(e-1); len(power) < len(text) {
			return power
		}
	}
	return text
}
