//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/sweep"
)

// A card that lives in a file, whose power limit somebody has set to 640 W; its default is 700.
const foundLimit = 640

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

type cardState struct {
	Limit  float64 `json:"power_limit_watts"`
	Locked float64 `json:"locked_clock_mhz,omitempty"`
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

// lowtoggleProcess is this test binary as the program (TestMain).
func lowtoggleProcess(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	stderr := new(bytes.Buffer)
	return &exec.Cmd{Path: program, Args: append([]string{"lowtoggle"}, args...), Stderr: stderr}, stderr
}

// TestSweepKilled: whatever ends a sweep, the card's limit is what it was.
func TestSweepKilled(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			if signal.Ignored(sig) { // under nohup, say, and by what it starts
				t.Skip("this process ignores it")
			}
			card := cardFile(t, cardState{Limit: foundLimit})
			p, stderr := lowtoggleProcess(t, "sweep", "--shape", "256x256x256", "--against", "zeros", "--device", "simulated:"+card,
				"--change-settings", "--caps", "200..600/10", "--clocks", "900,1200", "--time", "900s", "--precision", "0.001%")
			p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // which all is sent to, as a terminal does
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- p.Wait() }() // until the watchdog, which has its stderr, has ended too
			for last := readCard(t, card); last.Limit == foundLimit; last = readCard(t, card) {
				select {
				case err := <-ended:
					t.Fatalf("it ended before anything was set: %v\n%s", err, stderr)
				case <-time.After(time.Millisecond):
				}
			}
			if err := syscall.Kill(-p.Process.Pid, sig); err != nil {
				t.Fatal(err)
			}
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Fatal("it does not end")
			}
			if s := readCard(t, card); s.Limit != foundLimit || s.Locked != 0 {
				t.Errorf("the card is left at %+v\n%s", s, stderr)
			}
			killed := strings.Contains(stderr.String(), "the sweep was killed; the card's power limit is 640 W again")
			if sig == syscall.SIGKILL && !killed || sig == syscall.SIGINT && !strings.Contains(stderr.String(), "interrupted") {
				t.Errorf("it says:\n%s", stderr)
			}
			if status := p.ProcessState.Sys().(syscall.WaitStatus); sig != syscall.SIGKILL && status.ExitStatus() != exitFailed {
				t.Errorf("%v", p.ProcessState)
			}
		})
	}
}

// TestWatchdog: it does what it is told, and where it is told nothing any more it restores.
func TestWatchdog(t *testing.T) {
	name := os.Args[0]
	os.Args[0] = "lowtoggle" // the name by which the test binary is the program
	defer func() { os.Args[0] = name }()
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
			w, err := startWatchdog("simulated:"+card, sweep.Original{Cap: foundLimit, Clocks: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(w.Alive(), end.do(w.(*watchdog))); err != nil {
				t.Error(err)
			}
			if s := readCard(t, card); s != end.want {
				t.Errorf("%+v, want %+v", s, end.want)
			}
		})
	}
	t.Run("gone", func(t *testing.T) {
		w, err := startWatchdog("simulated:"+cardFile(t, changed), sweep.Original{Cap: foundLimit})
		if err != nil {
			t.Fatal(err)
		}
		dog := w.(*watchdog)
		if err := dog.process.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		dog.ended <- <-dog.ended
		if w.Alive() == nil || w.Done() == nil || w.Restore() == nil {
			t.Error("a watchdog that is gone answers")
		}
	})
	t.Run("no card", func(t *testing.T) {
		card := filepath.Join(t.TempDir(), "card.json")
		if err := os.WriteFile(card, []byte("{"), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := startWatchdog("simulated:"+card, sweep.Original{Cap: 700}); err == nil || !strings.Contains(err.Error(), "card.json") {
			t.Error(err)
		}
	})
}
