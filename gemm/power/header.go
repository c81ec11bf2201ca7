package power

import (
	"fmt"
	"slices"
	"time"
)

// Reasons why a comparison ended ([Header.Stopped]).
const (
	StoppedPrecision = "precision" // every interval reached the precision
	StoppedTime      = "time"      // the time was over before the precision was reached
	StoppedCancelled = "cancelled" // the context ended
	StoppedFailed    = "failed"
)

// Header holds the fields that the results of all comparisons have: comparisons of products, models and servers.
type Header struct {
	GPU string `json:"gpu"` // name of the first card
	// Resolvable is the smallest relative effect that this run resolves. It is the half width of the null comparison's
	// interval, measured from 1. It is absent if there is no interval.
	Resolvable float64 `json:"smallest_effect,omitempty"`
	// Valid is false if the figures are not valid. Invalid then lists the reasons.
	Valid    bool     `json:"valid"`
	Invalid  []string `json:"invalid,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Stopped is the reason why the comparison ended, such as [StoppedPrecision].
	Stopped   string  `json:"stopped"`
	Date      string  `json:"date,omitempty"`
	Command   string  `json:"command,omitempty"`
	Seed      uint64  `json:"seed"`
	Precision float64 `json:"precision"`
	Seconds   float64 `json:"compare_seconds"` // from the first block to the end of the last block
}

// NewHeader returns the header of a valid result. A zero date is left out of the header.
func NewHeader(gpu string, date time.Time, command string, seed uint64, precision float64) Header {
	h := Header{GPU: gpu, Valid: true, Command: command, Seed: seed, Precision: precision}
	if !date.IsZero() {
		h.Date = date.Format(time.RFC3339)
	}
	return h
}

// Invalidate marks the result as not valid and adds a reason.
func (h *Header) Invalidate(format string, args ...any) {
	h.Valid = false
	h.Invalid = append(h.Invalid, fmt.Sprintf(format, args...))
}

// Warn adds a warning, unless the same warning is already there.
func (h *Header) Warn(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(h.Warnings, text) {
		h.Warnings = append(h.Warnings, text)
	}
}
