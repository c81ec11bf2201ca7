package card

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/lowtoggle/lowtoggle/cli/exit"
)

// watchdogOf returns the process number of a sweep's watchdog.
func watchdogOf(t *testing.T, sweep int) int {
	t.Helper()
	list, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range list {
		stat, _ := os.ReadFile(path) // the process may have ended
		_, rest, found := strings.Cut(string(stat), ") ")
		var state string
		var parent int
		if n, _ := fmt.Sscan(rest, &state, &parent); !found || n < 2 || parent != sweep {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	t.Fatal("no watchdog")
	return 0
}

// TestWatchdogKilled: a sweep whose watchdog is killed restores the settings and ends.
func TestWatchdogKilled(t *testing.T) {
	t.Parallel()
	card := cardFile(t, cardState{Limit: foundLimit})
	p, _, stderr, ended := longSweep(t, card)
	if err := syscall.Kill(watchdogOf(t, p.Process.Pid), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-ended
	if s := readCard(t, card); s.Limit != foundLimit || s.Locked != 0 {
		t.Errorf("the card is left at %+v", s)
	}
	if message := strings.Join(strings.Fields(stderr.String()), " "); p.ProcessState.ExitCode() != exit.Failed || !strings.Contains(message, "the watchdog has ended") ||
		!strings.Contains(message, "the card's power limit is 640 W again") {
		t.Errorf("%v: %s", p.ProcessState, message)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(card), "*.settings")); len(left) > 0 {
		t.Errorf("%v stays", left)
	}
}

// TestSweepAndWatchdogKilled: if both are killed, the next sweep of the card restores the settings first.
func TestSweepAndWatchdogKilled(t *testing.T) {
	t.Parallel()
	card := cardFile(t, cardState{Limit: foundLimit})
	p, _, _, ended := longSweep(t, card)
	watchdog := watchdogOf(t, p.Process.Pid)
	for _, pid := range []int{p.Process.Pid, watchdog} {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil { // stop both, so that neither acts between the two kills
			t.Fatal(err)
		}
	}
	for _, pid := range []int{watchdog, p.Process.Pid} {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	<-ended
	if s := readCard(t, card); s.Limit == foundLimit {
		t.Fatalf("the card is at %+v: the test has no effect", s)
	}
	next, stderr := lowtoggleProcess(t, card, "sweep", "--shape", "256x256x256", "--against", "none", "--device", "simulated:"+card,
		"--change-settings", "--caps", "400", "--time", "8s")
	err := next.Run()
	message := strings.Join(strings.Fields(stderr.String()), " ")
	if next.ProcessState.ExitCode() == exit.Failed || !strings.Contains(message, "killed together with its watchdog; the card's power limit is 640 W again, and its clock is unlocked") {
		t.Errorf("%v: %s", err, message)
	}
	if s := readCard(t, card); s.Limit != foundLimit || s.Locked != 0 {
		t.Errorf("the card is left at %+v", s)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(card), "*.settings")); len(left) > 0 {
		t.Errorf("%v stays", left)
	}
}
