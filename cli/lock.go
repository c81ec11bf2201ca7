package cli

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/lowtoggle/lowtoggle/internal/lock"
)

const sweepBusy = "another sweep is running on this card"

// lockCard keeps other sweeps from a card, whose power limit they would take for the original. The lock goes
// with the last process that has the file: the watchdog, where the sweep is killed.
func lockCard(id string) (*os.File, error) { return acquire(cardLock(id), sweepBusy) }

// checkLock fails where a sweep is running on a card. It writes nothing.
func checkLock(id string) error { return explainHeld(lock.Check(cardLock(id)), sweepBusy) }

func cardLock(id string) string {
	if file, simulated := strings.CutPrefix(id, simulatedDevice+":"); simulated {
		id = simulatedDevice + "-" + fileID(file)
	}
	return lockPath("sweep-" + id)
}

// lockComponents keeps this user's other calibrates from a file, of which each would write its own readings.
func lockComponents(file string) (*os.File, error) {
	path := lockPath(fmt.Sprintf("components-%d-%s", os.Getuid(), fileID(file)))
	return acquire(path, "another calibrate is writing "+file)
}

// acquire locks a file, and says what its holder is busy with where another process has it.
func acquire(path, busy string) (*os.File, error) {
	f, err := lock.Acquire(path)
	if err != nil && !errors.Is(err, lock.ErrHeld) {
		return nil, fmt.Errorf("a lock against others, in the folder that TMPDIR names: %w", err)
	}
	return f, explainHeld(err, busy)
}

func explainHeld(err error, busy string) error {
	if !errors.Is(err, lock.ErrHeld) {
		return err
	}
	if pid := lock.Holder(err); pid != "" { // else it has just begun
		busy += fmt.Sprintf(" (pid %s)", pid)
	}
	return fmt.Errorf("%s: wait for it", busy)
}

// lockPath is in the folder for temporary files, which users share.
func lockPath(id string) string { return filepath.Join(os.TempDir(), "lowtoggle-"+id+".lock") }

// fileID stands for a file, by whatever path its folder is reached.
func fileID(file string) string {
	if folder, err := filepath.EvalSymlinks(filepath.Dir(file)); err == nil {
		file = filepath.Join(folder, filepath.Base(file))
	}
	if whole, err := filepath.Abs(file); err == nil {
		file = whole
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(file)))
}
