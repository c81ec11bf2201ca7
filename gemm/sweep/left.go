package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
	"github.com/lowtoggle/lowtoggle/internal/bounded"
)

// remembered has the contents of the file that a sweep keeps while a card's settings are changed. If the sweep and its watchdog
// are both killed, the next sweep of the card restores the settings.
type remembered struct {
	Original Original `json:"original"`
	Boot     string   `json:"boot,omitempty"` // the system's start, which resets a card's settings; empty: unknown
}

// rememberedPath returns the path of this file, which is beside the card's lock.
func rememberedPath(card string) string {
	return filepath.Join(os.TempDir(), "lowtoggle-"+lockName(card)+".settings")
}

func remember(card string, o Original) error {
	js, err := json.Marshal(remembered{o, bootID()})
	if err != nil {
		return err
	}
	return atomicfile.Write(rememberedPath(card), append(js, '\n'))
}

func forget(card string) error {
	if err := os.Remove(rememberedPath(card)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// bootID identifies the system's start on Linux.
func bootID() string {
	id, _ := bounded.ReadFile("/proc/sys/kernel/random/boot_id", bounded.Config) // unknown on other systems
	return string(id)
}

// RestoreLeft restores and returns the settings that a sweep left behind when it was killed together with its watchdog. It
// returns nil if there are none. The caller must hold the card's lock. Settings from before the system's last start are
// forgotten, and so is a file of another user.
func RestoreLeft(name string, card power.Card) (*Original, error) {
	path := rememberedPath(name)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r remembered
	js, err := bounded.ReadFile(path, bounded.Config)
	if err == nil && info.Mode().IsRegular() && ownFile(info) {
		err = json.Unmarshal(js, &r)
	}
	if err != nil || !(r.Original.Cap > 0) || r.Boot != bootID() {
		return nil, forget(name)
	}
	governor, err := power.Govern(card)
	if err == nil {
		err = r.Original.Restore(governor)
	}
	if err != nil {
		return nil, fmt.Errorf("an earlier sweep was killed together with its watchdog: %w", &RestoreError{r.Original, err})
	}
	return &r.Original, forget(name)
}
