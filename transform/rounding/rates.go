package rounding

import (
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Rates are the energies of weights by their bits, relative to an ordinary weight.
type Rates struct {
	// Significant[b] is the energy of a value with b significant bits, from 1 (a power of two) to all bits of the
	// format (MantBits+1). Significant[0] is the energy of zero. From 1 bit on, energies do not fall.
	Significant []float64 `json:"significant"`
	// Line is the energy of an element in a row or column of zeros. Callers of [Prune] use Line; [Trellis] does not.
	Line float64 `json:"line"`
	// Differ is the energy of a step from row to row between different values, and Sign the extra energy if the signs
	// differ. Both are 0 if rows are not neighbours in the datapath.
	Differ float64 `json:"differ,omitempty"`
	Sign   float64 `json:"sign,omitempty"`
	// Run is the number of consecutive rows in one lane; the next Run rows are in the next lane. Run is 0 if neither
	// Differ nor Sign counts. With Run 4 and two lanes, rows 8 to 11 follow rows 0 to 3, and rows 12 to 15 follow
	// rows 4 to 7. Lanes of 0 stands for two lanes. Run is a power of two, at most 256 divided by the number of
	// lanes.
	Run   int `json:"run,omitempty"`
	Lanes int `json:"lanes,omitempty"`
}

// Validate returns an error if the rates are invalid for values of f.
func (r Rates) Validate(f weights.Format) error {
	if len(r.Significant) != f.MantBits+2 {
		return fmt.Errorf("rounding: there are %d costs of significant bits, and %s needs %d: for zero, and for 1 to %d bits",
			len(r.Significant), f.DType, f.MantBits+2, f.MantBits+1)
	}
	for b, c := range r.Significant {
		if !(c >= 0) || math.IsInf(c, 1) || b > 1 && c < r.Significant[b-1] {
			return fmt.Errorf("rounding: the cost of %d significant bits is %g: costs must not be negative, and must not fall from 1 bit on", b, c)
		}
	}
	for _, c := range []float64{r.Line, r.Differ, r.Sign} {
		if !(c >= 0) || math.IsInf(c, 1) {
			return fmt.Errorf("rounding: a cost is %g: costs must be finite and not negative", c)
		}
	}
	if r.Lanes < 0 || r.Lanes > chunkRows {
		return fmt.Errorf("rounding: there are %d lanes: give 0 to %d", r.Lanes, chunkRows)
	}
	if most := chunkRows / r.lanes(); r.coupled() && (r.Run < 1 || r.Run > most || r.Run&(r.Run-1) != 0) {
		return fmt.Errorf("rounding: a run has %d rows: give a power of two up to %d", r.Run, most)
	}
	return nil
}

func (r Rates) lanes() int {
	if r.Lanes == 0 {
		return 2
	}
	return r.Lanes
}

func (r Rates) coupled() bool { return r.Differ > 0 || r.Sign > 0 }
