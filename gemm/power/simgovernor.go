package power

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
)

// simSettings are the settings that a governor can change.
type simSettings struct {
	Limit  float64 `json:"power_limit_watts"`
	Locked float64 `json:"locked_clock_mhz,omitempty"` // 0: not locked
}

// recall reads the settings from the State file, because another process may have changed them. If there is no file,
// the settings are the defaults.
func (s *Sim) recall() error {
	if s.opt.State == "" {
		return nil
	}
	found := simSettings{Limit: s.opt.Cap}
	text, err := os.ReadFile(s.opt.State)
	if err == nil {
		if err = json.Unmarshal(text, &found); err == nil {
			err = s.settable(found)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w: delete the file to reset the card", s.opt.State, err)
		}
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("settings of the simulated card: %w", err)
	}
	s.settings = found
	return nil
}

// settable returns an error for settings outside the card's range.
func (s *Sim) settable(to simSettings) error {
	if o := s.opt; !(to.Limit >= o.CapMin && to.Limit <= o.Cap) {
		return fmt.Errorf("power limit of %v W: give %v to %v W", to.Limit, o.CapMin, o.Cap)
	}
	if to.Locked == 0 {
		return nil
	}
	return s.lockable(to.Locked)
}

func (s *Sim) lockable(mhz float64) error {
	if o := s.opt; !(mhz >= o.MinClock && mhz <= o.MaxClock) {
		return fmt.Errorf("clock locked at %v MHz: give %v to %v MHz", mhz, o.MinClock, o.MaxClock)
	}
	return nil
}

// change applies a change to the settings.
func (s *Sim) change(how func(*simSettings)) error {
	s.query()
	if err := s.lost(); err != nil {
		return err
	}
	if s.opt.Unprivileged {
		return fmt.Errorf("simulated card: %w", ErrNotPermitted)
	}
	if err := s.recall(); err != nil {
		return err
	}
	to := s.settings
	how(&to)
	if err := s.settable(to); err != nil {
		return err
	}
	if s.opt.State != "" {
		if err := to.write(s.opt.State); err != nil {
			return fmt.Errorf("settings of the simulated card: %w", err)
		}
	}
	s.settings = to
	s.settle()
	return nil
}

// write writes the settings to a file atomically, because this process may be killed at any time.
func (to simSettings) write(path string) error {
	text, err := json.Marshal(to)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, append(text, '\n'))
}

// PowerLimit returns the current power limit in watts.
func (s *Sim) PowerLimit() (float64, error) {
	s.query()
	if err := s.recall(); err != nil {
		return 0, err
	}
	s.settle()
	return s.settings.Limit, s.lost()
}

// PowerLimits returns CapMin, Cap, and Cap as the default.
func (s *Sim) PowerLimits() (low, high, preset float64, err error) {
	s.query()
	return s.opt.CapMin, s.opt.Cap, s.opt.Cap, nil
}

// SetPowerLimit sets the power limit, in watts.
func (s *Sim) SetPowerLimit(watts float64) error {
	return s.change(func(to *simSettings) { to.Limit = watts })
}

// LockClock locks the clock, in MHz.
func (s *Sim) LockClock(mhz float64) error {
	if err := s.lockable(mhz); err != nil {
		return err
	}
	return s.change(func(to *simSettings) { to.Locked = mhz })
}

// UnlockClock unlocks the clock.
func (s *Sim) UnlockClock() error { return s.change(func(to *simSettings) { to.Locked = 0 }) }
