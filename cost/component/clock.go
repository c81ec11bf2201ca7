package component

import (
	"github.com/lowtoggle/lowtoggle/internal/elementary"
)

// At returns the kernel at another clock, in MHz. The time on the multiprocessors is proportional to 1/clock; the
// times in memory and of rests do not change. If the kernel has no time, At derives it from the highest measured
// rates.
func (m *Model) At(k Kernel, clock float64) Kernel {
	memory, share, corner := 0.0, m.Facts.Clock.MemoryTime, m.Facts.Clock.Overlap
	if rate := m.Rates["memory"]; rate > 0 {
		memory = share * k.Memory / rate
	}
	var chip float64 // time on the multiprocessors at k.Clock
	if k.Seconds > 0 {
		busy := k.Seconds - k.Idle
		memory = min(memory, share*busy)
		chip = elementary.Pow(elementary.Pow(busy, corner)-elementary.Pow(memory, corner), 1/corner)
	} else {
		k.Clock = m.FullClock
		chip = m.onChip(&k)
	}
	chip *= k.Clock / clock
	k.Clock = clock
	k.Seconds = k.Idle + elementary.Pow(elementary.Pow(chip, corner)+elementary.Pow(memory, corner), 1/corner)
	return k
}

// onChip returns the least time of a kernel's operations and bytes on the chip, in seconds, at the highest clock.
func (m *Model) onChip(k *Kernel) (seconds float64) {
	for _, part := range []struct {
		rate   string
		amount float64
	}{{k.Type.String(), k.Ops}, {"cache", k.Asked}} {
		if rate := m.Rates[part.rate]; rate > 0 {
			seconds = max(seconds, part.amount/rate)
		}
	}
	return seconds
}

func (m *Model) all(kernels []Kernel, clock float64) []Kernel {
	list := make([]Kernel, len(kernels))
	for i, k := range kernels {
		list[i] = m.At(k, clock)
	}
	return list
}

// Clock returns the clock in MHz that the card chooses for kernels that alternate faster than it can change its
// clock. This is the highest clock at which power is within Drawn and operations are within Limits.
func (m *Model) Clock(kernels []Kernel) float64 {
	drawn := m.Drawn
	if drawn == 0 { // no kernel reached the cap
		drawn = m.PowerLimit
	}
	fits := func(clock float64) bool {
		at := m.all(kernels, clock)
		var seconds, held float64
		for i := range at {
			seconds += at[i].Seconds
			if l := m.Limits[at[i].Type]; l > 0 {
				held += at[i].Ops / l
			}
		}
		return held <= seconds && (drawn <= 0 || m.watts(at, m.own(), everyTerm) <= drawn)
	}
	low, high := m.Facts.Clock.Lowest*m.FullClock, m.FullClock
	if fits(high) {
		return high
	}
	for range 40 {
		if middle := (low + high) / 2; fits(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
