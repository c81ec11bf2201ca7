package profile

import (
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/stat"
)

// worth says whether a source tells anything that the reference does not, and why not.
func (s *stitching) worth(src, reference *source, c *solution) (bool, string) {
	const (
		falsest = 0.1  // off from the reference's level
		vaguest = 0.05 // of a jump, by which readings after it may be off
	)
	if s.coarse(src, reference, 1) {
		return false, fmt.Sprintf("it averages over %s, the %s over %s", TimeText(src.Window), reference.Name, TimeText(reference.Window))
	}
	if n := s.count(src); n < enough {
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

// coarse says whether a source averages over more than twice the time that the reference does, were its window so
// many times shorter.
func (s *stitching) coarse(src, reference *source, shorter time.Duration) bool {
	return src.Window/shorter+src.Lag > 2*(reference.Window+reference.Lag)
}

// vague are the shares of jumps by which the source's readings are off from the curve right after these.
func (s *stitching) vague(src *source, c *solution) (off []float64) {
	const before, after = 0.01, 0.05 // seconds
	rough := noiseOf(s.cells, s.rows([]*source{src}), c.watts, 0, s.floor).watts
	for _, b := range s.breaks {
		end := b + after + (src.Window + src.Delay).Seconds()
		jump := math.Abs(c.watts[s.index(end/s.step)] - c.watts[s.index((b-before)/s.step)])
		if jump < 10*rough {
			continue
		}
		for _, r := range src.readings {
			if at := (r.At - s.from).Seconds(); b <= at && at <= end {
				a, b := src.stretch(r, s.from)
				m := s.spanOf(r.Run, a, b, src.Lag).mean(c.watts)
				off = append(off, math.Abs(r.Watts/src.Gain-m)/jump)
			}
		}
	}
	return off
}
