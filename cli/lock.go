package cli

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const sweepBusy = "another sweep is running on this card"

// lockCard keeps other sweeps from a card, whose power limit they would take for the original. The lock goes
// with the last process that has the file: the watchdog, where the sweep is killed.
func lockCard(id string) (*os.File, error) { return lockFile(cardLock(id), sweepBusy) }

// checkLock fails where a sweep is running on a card. It writes nothing.
func checkLock(id string) error { return checkFree(cardLock(id), sweepBusy) }

func cardLock(id string) string {
	if file, simulated := strings.CutPrefix(id, simulatedDevice+":"); simulated {
		id = simulatedDevice + "-" + fileID(file)
	}
	return lockPath("sweep-" + id)
}

// lockComponents keeps this user's other calibrates from a file, of which each would write its own readings.
func lockComponents(file string) (*os.File, error) {
	path := lockPath(fmt.Sprintf("components-%d-%s", os.Getuid(), fileID(file)))
	return lockFile(path, "another calibrate is writing "+file)
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
