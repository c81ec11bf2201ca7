package sweep

import (
	"errors"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// Original holds a card's settings before a sweep.
type Original struct {
	Cap float64 `json:"cap_watts"` // the power limit
	// Clocks is true if the sweep may have locked the clock. Restore then unlocks it. An earlier lock cannot be read.
	Clocks bool `json:"clocks,omitempty"`
}

// String returns a clause about the restored settings.
func (o Original) String() string {
	text := fmt.Sprintf("the card's power limit is %g W again", o.Cap)
	if o.Clocks {
		text += ", and its clock is unlocked"
	}
	return text
}

// Command returns the shell command that restores the settings of the card with this UUID.
func (o Original) Command(uuid string) string {
	text := fmt.Sprintf("nvidia-smi -i %s -pl %g", uuid, o.Cap)
	if o.Clocks {
		text += fmt.Sprintf(" && nvidia-smi -i %s -rgc", uuid)
	}
	return text
}

// Restore restores the settings, then reads the limit back and compares it. It tries several times and returns the
// error of the last attempt.
func (o Original) Restore(g power.Governor) error {
	const tries = 3
	var err error
	for range tries {
		if err = o.restore(g); err == nil {
			return nil
		}
	}
	return err
}

func (o Original) restore(g power.Governor) error {
	var clock error
	if o.Clocks {
		if clock = g.UnlockClock(); errors.Is(clock, power.ErrAbsent) {
			clock = nil // the clock of such a card cannot have been locked
		}
	}
	limit := g.SetPowerLimit(o.Cap)
	have, err := g.PowerLimit()
	switch {
	case err == nil && same(have, o.Cap):
		limit = nil // the limit is correct, so the error of the call is ignored
	case err == nil && limit == nil:
		limit = fmt.Errorf("the power limit is %g W instead of %g W", have, o.Cap)
	}
	return errors.Join(clock, limit)
}

// same reports whether two limits in watts are equal. A driver stores milliwatts.
func same(a, b float64) bool { return math.Abs(a-b) < 0.5 }

// Watchdog restores the settings if this process cannot restore them.
type Watchdog interface {
	// Alive returns an error if the watchdog has ended.
	Alive() error
	// Done tells the watchdog that the settings are restored, and waits until the watchdog has ended.
	Done() error
	// Restore makes the watchdog restore the settings, and waits until they are restored.
	Restore() error
}

// Guard changes a card's settings and restores them.
type Guard struct {
	governor power.Governor
	original Original
	watchdog Watchdog
	changed  bool
}

// NewGuard reads the settings. It checks the permission by setting the power limit to its current value. clocks is true
// if clocks will be locked. Before any other change, watch is called with the settings to restore. If watch is nil,
// there is no watchdog.
func NewGuard(g power.Governor, clocks bool, watch func(Original) (Watchdog, error)) (*Guard, error) {
	if g == nil {
		return nil, fmt.Errorf("the card's settings cannot be changed: no governor was given: %w", power.ErrAbsent)
	}
	limit, err := g.PowerLimit()
	if err != nil {
		return nil, fmt.Errorf("the card's power limit cannot be read: %w", err)
	}
	if err := g.SetPowerLimit(limit); err != nil {
		return nil, fmt.Errorf("the card's power limit cannot be set, even to its present value: %w", err)
	}
	guard := &Guard{governor: g, original: Original{limit, clocks}}
	if watch != nil {
		if guard.watchdog, err = watch(guard.original); err != nil {
			return nil, fmt.Errorf("no setting was changed, because the watchdog did not start: %w", err)
		}
	}
	return guard, nil
}

// Original returns the settings that the guard restores.
func (g *Guard) Original() Original { return g.original }

// Apply changes the card to the setting s and reads the power limit back.
func (g *Guard) Apply(s Setting) error {
	if g.watchdog != nil {
		if err := g.watchdog.Alive(); err != nil {
			return fmt.Errorf("the setting was not changed, because the watchdog has ended: %w", err)
		}
	}
	if s.Clock > 0 && !g.original.Clocks {
		return errors.New("the clock cannot be locked: NewGuard was called without clocks")
	}
	limit := s.Cap
	if limit == 0 {
		limit = g.original.Cap
	}
	g.changed = true
	if err := g.governor.SetPowerLimit(limit); err != nil {
		return err // names the setting
	}
	if have, err := g.governor.PowerLimit(); err != nil || !same(have, limit) {
		return errors.Join(err, fmt.Errorf("the power limit was set to %g W, but the card reports %g W", limit, have))
	}
	switch {
	case s.Clock > 0:
		if err := g.governor.LockClock(s.Clock); err != nil {
			return err
		}
	case g.original.Clocks:
		if err := g.governor.UnlockClock(); err != nil {
			return err
		}
	}
	return nil
}

// RestoreError is the error for settings of a card that could not be restored.
type RestoreError struct {
	Original Original
	Err      error
}

func (e *RestoreError) Error() string {
	return fmt.Sprintf("the card's settings (power limit %g W) could not be restored: %v", e.Original.Cap, e.Err)
}

func (e *RestoreError) Unwrap() error { return e.Err }

// Close restores the settings. If this fails, the watchdog tries to restore them. If the watchdog also fails, the error
// is a *RestoreError. Close is idempotent.
func (g *Guard) Close() error {
	if g.changed {
		if err := g.original.Restore(g.governor); err != nil {
			if g.watchdog != nil {
				late := g.watchdog.Restore()
				g.watchdog = nil
				if late == nil {
					g.changed = false
					return nil
				}
				err = errors.Join(err, late)
			}
			return &RestoreError{g.original, err}
		}
		g.changed = false
	}
	if g.watchdog == nil {
		return nil
	}
	watchdog := g.watchdog
	g.watchdog = nil
	if err := watchdog.Done(); err != nil {
		return fmt.Errorf("the card's settings are restored, but the watchdog failed: %w", err)
	}
	return nil
}

// Run calls a function and then closes the guard, also after a panic. It joins both errors.
func (g *Guard) Run(do func() error) (err error) {
	defer func() { err = errors.Join(err, g.Close()) }()
	return do()
}
