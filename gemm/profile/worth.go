package profile

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"
)

// worth says whether a source tells anything that the reference does not, and why not.
func (s *stitching) worth(src, reference *source, c *solution) (bool, string) {
	const (
		longest = 2    // windows of the reference
		falsest = 0.1  // off from the reference's level
		vaguest = 0.05 // of a jump, by which readings after it may be off
	)
	if src.Window > longest*reference.Window {
		return false, fmt.Sprintf("it averages over %s, the %s over %s", text(src.Window), reference.Name, text(reference.Window))
	}
	if n := len(s.rows([]*source{src})); n < enough {
		return false, fmt.Sprintf("only %d of its readings lie within the curve", n)
	}
	if math.Abs(src.Gain-1) > falsest {
		return false, fmt.Sprintf("it reads %.2f of what the %s says", src.Gain, reference.Name)
	}
	if off := s.vague(src, c); len(off) >= enough && stat.Mean(off, nil) > vaguest {
		return false, fmt.Sprintf("no window explains it: after a jump of power it is off by %.0f %% of that", 100*stat.Mean(off, nil))
	}
	return true, ""
}

// vague are the shares of jumps by which the source's readings are off from the curve right after these.
func (s *stitching) vague(src *source, c *solution) (off []float64) {
	const before, after = 0.01, 0.05 // seconds
	sum := running(c.watts)
	rough := noiseOf(s.cells, s.rows([]*source{src}), c.watts, sum, 0, s.floor).watts
	for _, b := range s.breaks {
		end := b + after + (src.Window + src.Delay).Seconds()
		jump := math.Abs(c.watts[s.index(end/s.step)] - c.watts[s.index((b-before)/s.step)])
		if jump < 10*rough {
			continue
		}
		for _, r := range src.readings {
			if at := (r.At - s.from).Seconds(); b <= at && at <= end {
				m := s.clipped(src.stretch(r, s.from)).mean(sum)
				off = append(off, math.Abs(r.Watts/src.Gain-m)/jump)
			}
		}
	}
	return off
}
