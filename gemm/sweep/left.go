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

// remembered is the content of a file that a sweep keeps while a card's settings are changed. If the sweep and its
// watchdog are both killed, the next sweep of the card restores these settings.
type remembered struct {
	Original Original `json:"original"`
	Boot     string   `json:"boot,omitempty"` // ID of the system's boot, because a reboot resets a card's settings; empty: unknown
}

// rememberedPath returns the path of the file, which lies beside the card's lock file.
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

// bootID returns the ID of the current boot on Linux.
func bootID() string {
	id, _ := bounded.ReadFile("/proc/sys/kernel/random/boot_id", bounded.Config) // unknown on other systems
	return string(id)
}

// RestoreLeft restores and returns the settings of a sweep that was killed together with its watchdog. It returns nil
// if there is no such sweep. The caller must hold the card's lock. RestoreLeft ignores settings from before the last
// boot, and files of other users.
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
