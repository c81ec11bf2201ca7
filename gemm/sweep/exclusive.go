package sweep

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// ErrInUse is the error for a card that other processes use, or whose settings somebody has changed.
var ErrInUse = errors.New("the card's settings cannot be changed now")

// Governor returns the governor of a card that no other process uses and whose settings this process may change. It
// changes no settings. Errors are [ErrInUse] and those of [power.Govern].
func Governor(card power.Card) (power.Governor, error) {
	if err := Free(card); err != nil {
		return nil, err
	}
	return power.Govern(card)
}

// Free returns an [ErrInUse] if other processes use a card or somebody has changed its settings, or the error of a
// query. It changes nothing. It therefore cannot check whether this process may change settings.
func Free(card power.Card) error { return free(card, os.Getpid()) }

// free is Free for the process with the ID self.
func free(card power.Card, self int) error {
	if card == nil {
		return fmt.Errorf("no card was given: %w", power.ErrAbsent)
	}
	if mig := card.Info().MIG; mig != nil && *mig {
		return fmt.Errorf("%w: the card is split into MIG slices, which share its settings", ErrInUse)
	}
	if err := noOthers(card, self); err != nil {
		return err
	}
	if used := card.Info().MemoryUsed; used != nil && *used > ownMemory {
		return fmt.Errorf("%w: %.1f GB of the card's memory were in use at the start: end the process that uses this memory, because the settings would apply to it too (in a container, the driver may not list the process)",
			ErrInUse, float64(*used)/1e9)
	}
	reasons, err := card.Throttle()
	if err == nil && reasons&power.ApplicationClocks != 0 {
		return clocksSet()
	}
	return nil
}

// ownMemory is an upper bound of the memory of a driver and one context, in bytes.
const ownMemory = 4e9

// noOthers returns an error if another process is on the card.
func noOthers(card power.Card, self int) error {
	all, err := card.Processes()
	if err != nil && !errors.Is(err, power.ErrAbsent) {
		return fmt.Errorf("the processes on the card cannot be listed: %w", err)
	}
	if rest := power.Others(all, self); len(rest) > 0 {
		return fmt.Errorf("%w: another process uses the card (PID %d), and the settings would apply to it too: end that process first", ErrInUse, rest[0].PID)
	}
	return nil
}

// listed reports whether the driver lists this process on the card. If not, the driver may not list other processes
// either.
func listed(card power.Card, self int) bool {
	all, _ := card.Processes()
	return slices.ContainsFunc(all, func(p power.Process) bool { return p.PID == self })
}

func clocksSet() error {
	return fmt.Errorf("%w: somebody has set the card's clocks, and a sweep cannot read this setting to restore it later: reset the clocks first (nvidia-smi -rgc, nvidia-smi -rac)", ErrInUse)
}
