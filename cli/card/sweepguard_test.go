//go:build unix

package card

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/cli/exit"
)

// foundLimit is the power limit, in watts, that a user has set on the simulated card. The card's default is 700 W.
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

// lowtoggleProcess returns this test binary as the program (TestMain). Its temporary files go beside the card's file.
func lowtoggleProcess(t *testing.T, card string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	stderr := new(bytes.Buffer)
	return &exec.Cmd{Path: program, Args: append([]string{"lowtoggle"}, args...), Env: append(os.Environ(), "TMPDIR="+filepath.Dir(card)), Stderr: stderr}, stderr
}

// longSweep starts a sweep of a card in a process group of its own. It returns after the sweep has changed the limit.
// Read the sweep's standard output only after the sweep's end.
func longSweep(t *testing.T, card string) (p *exec.Cmd, stdout, stderr *bytes.Buffer, ended <-chan error) {
	t.Helper()
	p, stderr = lowtoggleProcess(t, card, "sweep", "--shape", "256x256x256", "--against", "zeros", "--device", "simulated:"+card,
		"--change-settings", "--caps", "200..600/10", "--clocks", "900,1200", "--time", "900s", "--precision", "0.001%")
	stdout = new(bytes.Buffer)
	p.Stdout = stdout
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal sends signals to the whole group
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	end := make(chan error, 1)
	go func() { end <- p.Wait() }() // waits also for the watchdog, which has the sweep's stderr
	for last := readCard(t, card); last.Limit == foundLimit; last = readCard(t, card) {
		select {
		case err := <-end:
			t.Fatalf("the sweep ended before it set anything: %v\n%s", err, stderr)
		case <-time.After(time.Millisecond):
		}
	}
	return p, stdout, stderr, end
}

func killGroup(t *testing.T, p *exec.Cmd, sig syscall.Signal, ended <-chan error) {
	t.Helper()
	if err := syscall.Kill(-p.Process.Pid, sig); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the sweep does not end")
	}
}

// TestSweepKilled: the card's limit is restored, however a sweep ends.
func TestSweepKilled(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			if signal.Ignored(sig) { // for example under nohup
				t.Skip("this process ignores it")
			}
			card := cardFile(t, cardState{Limit: foundLimit})
			p, stdout, stderr, ended := longSweep(t, card)
			killGroup(t, p, sig, ended)
			if s := readCard(t, card); s.Limit != foundLimit || s.Locked != 0 {
				t.Errorf("the card is left at %+v\n%s", s, stderr)
			}
			message := strings.Join(strings.Fields(stderr.String()), " ")
			killed := strings.Contains(message, "the sweep was killed; the card's power limit is 640 W again, and its clock is unlocked")
			said := strings.Contains(message, "lowtoggle: interrupted in visit ") && strings.Contains(message, "; the card's power limit is 640 W again, and its clock is unlocked; the report has what was measured until then") &&
				strings.Contains(stdout.String(), "simulated, not measured: simulated card, interrupted: ")
			var visit, made int
			if _, rest, found := strings.Cut(message, "in visit "); found && sig == syscall.SIGINT {
				fmt.Sscan(rest, &visit)
				_, rest, _ = strings.Cut(stdout.String(), "INVALID: ")
				if fmt.Sscan(rest, &made); strings.Contains(rest, "the last one in part") {
					made--
				}
				if said = said && made == visit-1; !said {
					t.Errorf("interrupted in visit %d, and %d were made to their end", visit, made)
				}
			}
			// With -short the race detector runs, which is slow, so the time for a report may end first. The settings
			// are still restored, without a message.
			late := testing.Short() && (killed || message == "lowtoggle: interrupted")
			if sig == syscall.SIGKILL && !killed || sig == syscall.SIGINT && !said && !late {
				t.Errorf("the output is:\n%s%s", stdout, stderr)
			}
			if status := p.ProcessState.Sys().(syscall.WaitStatus); sig != syscall.SIGKILL && status.ExitStatus() != exit.Failed {
				t.Errorf("%v", p.ProcessState)
			}
		})
	}
}

// TestSweepTwice: a second sweep of a card would take the first sweep's limit for the original.
func TestSweepTwice(t *testing.T) {
	t.Parallel()
	card := cardFile(t, cardState{Limit: foundLimit})
	first, _, _, ended := longSweep(t, card)
	try := func(more ...string) (*exec.Cmd, *bytes.Buffer, error) {
		p, stderr := lowtoggleProcess(t, card, append([]string{"sweep", "--shape", "256x256x256", "--against", "none", "--device", "simulated:" + card,
			"--caps", "400", "--time", "8s", "--quiet"}, more...)...)
		return p, stderr, p.Run()
	}
	ways := [][]string{nil, {"--change-settings"}} // a dry run reports the current limit, so it is refused too
	for _, more := range ways {
		second, stderr, _ := try(more...)
		if want := fmt.Sprintf("lowtoggle: another sweep is running on this card (pid %d): wait for it\n", first.Process.Pid); second.ProcessState.ExitCode() != exit.Failed || stderr.String() != want {
			t.Errorf("%v: %v: %s", more, second.ProcessState, stderr)
		}
	}
	killGroup(t, first, syscall.SIGKILL, ended)
	for _, more := range ways {
		if second, stderr, _ := try(more...); second.ProcessState.ExitCode() == exit.Failed || stderr.Len() > 0 {
			t.Errorf("%v, after the first was killed: %v: %s", more, second.ProcessState, stderr)
		}
	}
	if s := readCard(t, card); s.Limit != foundLimit {
		t.Errorf("the card is left at %v W", s.Limit)
	}
}
