package power

import "time"

// pollGap is the usual time between two polls of a counter, near the median. The zero value has seen no poll.
type pollGap time.Duration

// add moves the estimate towards the time between two polls, by at most a tenth.
func (g *pollGap) add(gap time.Duration) {
	switch d := pollGap(gap); {
	case *g == 0:
		*g = d
	case d > *g:
		*g = min(d, *g+*g/10+1)
	default:
		*g = max(d, *g-*g/10)
	}
}

// late returns the time between two polls above which a step between them was seen too late to give the step's time.
func (g pollGap) late() time.Duration { return 4*time.Duration(g) + time.Millisecond }
