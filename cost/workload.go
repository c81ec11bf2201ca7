package cost

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Role is the position of the weight operand in a GEMM. The tensor cores hold one operand while the other one streams
// past.
type Role uint8

// The roles. Stationary is the default: the A operand of cuBLAS, where today's runtimes pass the weights of
// linear layers.
const (
	Stationary Role = iota
	Streaming
)

// ParseRole parses "stationary" or "streaming".
func ParseRole(s string) (Role, error) {
	switch s {
	case "stationary":
		return Stationary, nil
	case "streaming":
		return Streaming, nil
	}
	return 0, fmt.Errorf("unknown role %q: use stationary or streaming", s)
}

// String returns the role's name, in the syntax of ParseRole.
func (r Role) String() string {
	switch r {
	case Stationary:
		return "stationary"
	case Streaming:
		return "streaming"
	}
	return fmt.Sprintf("Role(%d)", uint8(r))
}

// MarshalText returns the role's name, in the syntax of ParseRole. An invalid role is an error.
func (r Role) MarshalText() ([]byte, error) {
	if r > Streaming {
		return nil, fmt.Errorf("no such role: %v", r)
	}
	return []byte(r.String()), nil
}

// UnmarshalText parses a name like ParseRole.
func (r *Role) UnmarshalText(b []byte) (err error) {
	*r, err = ParseRole(string(b))
	return err
}

// Workload holds the shares of prefill (many tokens at once: compute-bound, power-capped) and of decode (few tokens:
// bandwidth-bound) in the energy of the original linear layers. The shares are not negative and sum to 1. The zero
// value is not a workload.
type Workload struct {
	Prefill, Decode float64
}

// DefaultWorkload is prefill alone.
var DefaultWorkload = Workload{Prefill: 1}

// ParseWorkload parses "prefill", "decode", or a share for each, as in "prefill=0.3,decode=0.7" or
// "prefill=30%,decode=70%".
func ParseWorkload(s string) (Workload, error) {
	switch s {
	case "prefill":
		return Workload{Prefill: 1}, nil
	case "decode":
		return Workload{Decode: 1}, nil
	}
	const use = "use prefill, decode, or shares such as prefill=30%%,decode=70%%"
	if !strings.Contains(s, "=") {
		return Workload{}, fmt.Errorf("unknown workload %q: "+use, s)
	}
	w, err := parseShares(s)
	if err == nil {
		err = w.Validate()
	}
	if err != nil {
		return Workload{}, fmt.Errorf("workload %q: %w; "+use, s, err)
	}
	return w, nil
}

func parseShares(s string) (w Workload, err error) {
	seen := map[string]bool{}
	for part := range strings.SplitSeq(s, ",") {
		name, text, ok := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		switch {
		case name != "prefill" && name != "decode":
			return w, fmt.Errorf("unknown phase %q", name)
		case !ok:
			return w, fmt.Errorf("%s has no share", name)
		}
		number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
		share, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if percent {
			share /= 100
		}
		switch {
		case err != nil:
			return w, fmt.Errorf("share of %s is not a number: %q", name, text)
		case seen[name]:
			return w, fmt.Errorf("%s is given twice", name)
		case name == "prefill":
			w.Prefill = share
		default:
			w.Decode = share
		}
		seen[name] = true
	}
	return w, nil
}

// Validate returns an error for shares that are negative, not numbers, or do not sum to 1 (within 1e-6).
func (w Workload) Validate() error {
	sum := w.Prefill + w.Decode
	switch {
	case math.IsNaN(sum) || w.Prefill < 0 || w.Decode < 0:
		return errors.New("a share is not between 0 and 1")
	case math.Abs(sum-1) > 1e-6:
		return fmt.Errorf("shares sum to %.6g, not 1", sum)
	}
	return nil
}

// String returns the shortest text that ParseWorkload parses to this value.
func (w Workload) String() string {
	switch w {
	case Workload{Prefill: 1}:
		return "prefill"
	case Workload{Decode: 1}:
		return "decode"
	}
	share := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
	return "prefill=" + share(w.Prefill) + ",decode=" + share(w.Decode)
}

// MarshalText returns a text in the syntax of ParseWorkload. An invalid workload is an error.
func (w Workload) MarshalText() ([]byte, error) {
	if err := w.Validate(); err != nil {
		return nil, fmt.Errorf("workload %v: %w", w, err)
	}
	return []byte(w.String()), nil
}

// UnmarshalText parses a text like ParseWorkload.
func (w *Workload) UnmarshalText(b []byte) (err error) {
	*w, err = ParseWorkload(string(b))
	return err
}
