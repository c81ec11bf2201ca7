//go:build unix

package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// asWatchdog makes this test binary a watchdog.
const asWatchdog = "LOWTOGGLE_TEST_WATCHDOG"

func TestMain(m *testing.M) {
	if os.Getenv(asWatchdog) == "" {
		os.Exit(m.Run())
	}
	if err := ServeWatchdog(os.Stdin, os.Stdout, openFile); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// openFile opens a simulated card whose settings are in a file.
func openFile(path string) (power.Card, error) {
	o := power.DefaultSim()
	o.State = path
	m, err := measure.OpenSimulated(o)
	if err != nil {
		return nil, err
	}
	return m.Card(), nil
}

func start(t *testing.T, card string, lock *os.File, o Original) (*watchdog, error) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := exec.Command(program)
	p.Env = append(os.Environ(), asWatchdog+"=1")
	w, err := StartWatchdog(p, card, lock, o)
	if err != nil {
		return nil, err
	}
	return w.(*watchdog), nil
}

// Somebody has set the card's power limit to 640 W; its default is 700.
const foundLimit = 640

type cardState struct {
	Limit  float64 `json:"power_limit_watts"`
	Locked float64 `json:"locked_clock_mhz,omitempty"`
}

func cardFile(t *testing.T, s cardState) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "card.json")
	data, err := json.Marshal(s)
	if err == nil {
		err = os.WriteFile(path, data, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func readCard(t *testing.T, path string) (s cardState) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestLockOutlives: the watchdog holds the lock until the settings are restored.
func TestLockOutlives(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	id := cardFile(t, cardState{Limit: foundLimit})
	lock, err := LockCard(id)
	if err != nil {
		t.Fatal(err)
	}
	w, err := start(t, id, lock, Original{Cap: foundLimit})
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil { // as the end of the sweep's process does
		t.Fatal(err)
	}
	if _, err := LockCard(id); err == nil {
		t.Error("the lock is free while the watchdog has not done its work")
	}
	if err := w.Done(); err != nil {
		t.Fatal(err)
	}
	if err := CheckCard(id); err != nil {
		t.Error(err)
	}
	again, err := LockCard(id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LockCard(id); err == nil {
		t.Error("locked twice")
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// TestWatchdog: the watchdog follows its orders, and restores the settings if the pipe ends without an order.
func TestWatchdog(t *testing.T) {
	changed, found := cardState{Limit: 300, Locked: 900}, cardState{Limit: foundLimit}
	for what, end := range map[string]struct {
		do   func(*watchdog) error
		want cardState
	}{
		"done":    {(*watchdog).Done, changed},
		"restore": {(*watchdog).Restore, found},
		"signals": {func(w *watchdog) (err error) {
			for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE} {
				err = errors.Join(err, w.process.Process.Signal(s))
			}
			return errors.Join(err, w.Restore())
		}, found},
		"killed": {func(w *watchdog) error {
			err := w.to.Close()
			<-w.ended // it says so and fails
			return err
		}, found},
	} {
		t.Run(what, func(t *testing.T) {
			card := cardFile(t, changed)
			w, err := start(t, card, nil, Original{Cap: foundLimit, Clocks: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(w.Alive(), end.do(w)); err != nil {
				t.Error(err)
			}
			if s := readCard(t, card); s != end.want {
				t.Errorf("%+v, want %+v", s, end.want)
			}
		})
	}
	t.Run("gone", func(t *testing.T) {
		w, err := start(t, cardFile(t, changed), nil, Original{Cap: foundLimit})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.process.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		w.ended <- <-w.ended
		if w.Alive() == nil || w.Done() == nil || w.Restore() == nil {
			t.Error("a watchdog that is gone answers")
		}
	})
	t.Run("no card", func(t *testing.T) {
		card := filepath.Join(t.TempDir(), "card.json")
		if err := os.WriteFile(card, []byte("{"), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := start(t, card, nil, Original{Cap: 700}); err == nil || !strings.Contains(err.Error(), "card.json") {
			t.Error(err)
		}
	})
}
