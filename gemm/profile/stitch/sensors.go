package stitch

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// fitSensors fits the sensors' responses and the speed law. Only the windows of the energy counter's readings are known
// beforehand. fitSensors returns a smoothness as the start of later fits.
func (s *stitcher) fitSensors(ctx context.Context) (smoothness, error) {
	var before []sensor
	for _, sen := range s.sensors {
		before = append(before, *sen)
	}
	filtered := s.fitTimeConstant(ctx)
	start, err := s.fitResponses(ctx, filtered)
	if err != nil || !filtered || !s.counterRunsAhead() {
		return start, err
	}
	if s.speeds, err = s.readSpeeds(ctx); err != nil {
		return start, err
	}
	s.sensors, s.filter = nil, nil
	for _, sen := range before {
		s.sensors = append(s.sensors, &sen)
	}
	return s.fitResponses(ctx, false)
}

// fitResponses fits each sensor's window, delay and gain to the trace of the other sensors, starting with the
// reference. Then it fits them together with the trace of all sensors. commonDelay fits a delay that all sensors share,
// and fitTimeConstant fits the filter.
func (s *stitcher) fitResponses(ctx context.Context, filtered bool) (smoothness, error) {
	c, err := s.fitReference(ctx, filtered)
	if err != nil {
		return initialSmoothness, err
	}
	reference := s.sensors[0]
	used := []*sensor{reference}
	for _, other := range s.sensors[1:] {
		if !other.Used {
			continue
		}
		other.Gain *= s.medianGain(other, c)
		if !tooSlow(other, reference, widest) { // otherwise no window in the search range is short enough
			s.searchWindow(ctx, other, c)
			other.Gain *= s.medianGain(other, c)
		}
		if err := ctx.Err(); err != nil {
			return initialSmoothness, err
		}
		if other.Used, other.Why = s.useful(other, reference, c); other.Used {
			used = append(used, other)
			if c, err = s.fit(ctx, used, c.smoothness); err != nil {
				return initialSmoothness, err
			}
		}
	}
	if len(used) > 1 {
		if c, err = s.fit(ctx, used, c.smoothness, growths...); err != nil {
			return initialSmoothness, err
		}
		for _, other := range used[1:] {
			s.refineWindow(ctx, other, used, c)
		}
	}
	if !filtered {
		if c, err = s.fitSpeedLaw(ctx, used, c); err != nil {
			return initialSmoothness, err
		}
	}
	return c.smoothness, nil
}

// fitReference fits the trace of the reference alone. The reference is the sensor that showed the filter, else the most
// precise sensor.
func (s *stitcher) fitReference(ctx context.Context, filtered bool) (*solution, error) {
	if filtered {
		c, err := s.fit(ctx, s.sensors[:1], initialSmoothness, growths...)
		if err != nil {
			return nil, err
		}
		return s.fitSpeedLaw(ctx, s.sensors[:1], c)
	}
	c, err := s.preciseReference(ctx)
	if err == nil && s.commonDelay(ctx, s.sensors[0], c) {
		c, err = s.fit(ctx, s.sensors[:1], initialSmoothness, growths...)
	}
	return c, err
}

// preciseReference fits the trace of the reference. Some energy counters report their steps with a varying delay, so
// each reading is imprecise. If another sensor is far more precise, it becomes the reference, and the energy counter is
// not used.
func (s *stitcher) preciseReference(ctx context.Context) (*solution, error) {
	const (
		precise = 0.02 // largest error of a precise reference, relative to the highest power
		better  = 4    // factor by which the other sensor's noise must be smaller
	)
	first, best := s.sensors[0], 0
	c, err := s.fit(ctx, s.sensors[:1], initialSmoothness, growths...)
	if err != nil {
		return nil, err
	}
	off := c.noise[0].watts
	if off <= precise*slices.Max(c.watts) {
		return c, nil
	}
	least := off / better
	for i, other := range s.sensors[1:] {
		if other.Window > first.Window || s.count(other) < minReadings {
			continue
		}
		alone, err := s.fit(ctx, []*sensor{other}, initialSmoothness, growths...)
		if err != nil {
			return nil, err
		}
		if n := alone.noise[0].watts; n < least {
			best, least, c = i+1, n, alone
		}
	}
	if best > 0 {
		s.sensors[0], s.sensors[best] = s.sensors[best], first
		first.Used, first.Why = false, fmt.Sprintf("its error (±%.0f W) is much larger than the error of the %s (±%.0f W)", off, s.sensors[0].Name, least)
	}
	return c, nil
}

// medianGain returns a sensor's scale relative to a trace, from the median of its readings. The median is robust
// against a wrong window and a sufficient start for the fit.
func (s *stitcher) medianGain(sen *sensor, c *solution) float64 {
	var ratio []float64
	for _, r := range s.rows([]*sensor{sen}) {
		if m := r.mean(c.watts); m > 0 {
			ratio = append(ratio, r.watts/m)
		}
	}
	if len(ratio) == 0 {
		return 1
	}
	if gain := stats.Median(ratio); gain > 0 {
		return gain
	}
	return 1
}

// useful reports whether a sensor adds information to the reference sensor's readings. If not, it returns the reason.
func (s *stitcher) useful(sen, reference *sensor, c *solution) (bool, string) {
	const (
		largestGain  = 0.1  // largest difference of a gain from 1
		largestError = 0.05 // largest error after a jump, relative to the jump
	)
	if tooSlow(sen, reference, 1) {
		return false, fmt.Sprintf("its averaging window (%v) is much longer than that of the %s (%v)", sen.Window, reference.Name, reference.Window)
	}
	if n := s.count(sen); n < minReadings {
		return false, fmt.Sprintf("only %d of its readings lie within the trace", n)
	}
	if math.Abs(sen.Gain-1) > largestGain {
		return false, fmt.Sprintf("it reads %.2f times the power of the %s", sen.Gain, reference.Name)
	}
	if off := s.errorsAfterJumps(sen, c); len(off) >= minReadings && stat.Mean(off, nil) > largestError {
		return false, fmt.Sprintf("no averaging window fits its readings: after a jump in power their error is %.0f %% of the jump", 100*stat.Mean(off, nil))
	}
	return true, ""
}

// tooSlow reports whether a sensor's window, divided by shorter, is still more than twice the reference's window.
func tooSlow(sen, reference *sensor, shorter Seconds) bool {
	return sen.Window/shorter+sen.TimeConstant > 2*(reference.Window+reference.TimeConstant)
}

// errorsAfterJumps returns the sensor's residuals right after jumps in power, relative to the jumps.
func (s *stitcher) errorsAfterJumps(sen *sensor, c *solution) (off []float64) {
	const before, after = 0.01, 0.05 // seconds
	rough := noiseOf(s.cells, s.rows([]*sensor{sen}), c.watts, 0, s.floor).watts
	for _, b := range s.breaks {
		end := b + after + (sen.Window + sen.Delay).Seconds()
		jump := math.Abs(c.watts[s.index(end/s.step)] - c.watts[s.index((b-before)/s.step)])
		if jump < 10*rough {
			continue
		}
		for _, r := range sen.readings {
			if at := (r.At - s.from).Seconds(); b <= at && at <= end {
				a, b := sen.stretch(r, s.from)
				m := s.spanOf(r.Run, a, b, sen.TimeConstant).mean(c.watts)
				off = append(off, math.Abs(r.Watts/sen.Gain-m)/jump)
			}
		}
	}
	return off
}
