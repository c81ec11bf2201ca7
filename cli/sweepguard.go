package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/sweep"
)

// A sweep that is killed cannot put the card's settings back, so another process does: this program again,
// in a session of its own, which knows what is to be put back before anything is changed. It reads from a
// pipe whose other end the sweep alone holds. A line says what to do; its end without one that the sweep
// is no more.
const (
	watchReady   = "ready"
	watchDone    = "done"    // the settings are back
	watchRestore = "restore" // the sweep cannot put them back
)

// watchOrder is what the watchdog is told first.
type watchOrder struct {
	Card     string         `json:"card"` // a UUID, or a simulated card
	Original sweep.Original `json:"original"`
}

// watched names a card so that another process finds it.
func watched(device string, card power.Info) string {
	if strings.HasPrefix(device, simulatedDevice) {
		return device
	}
	return card.UUID
}

// sweepGuardCommand is not for people.
var sweepGuardCommand = &cli.Command{
	Name: "sweep-guard", Hidden: true,
	Usage: "put a card's settings back when a sweep is killed; sweep starts it",
	Action: func(c *cli.Context) error {
		// Nothing but the pipe ends it, and nobody may be there to read what it writes.
		signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
		return keepWatch(os.Stdin, c.App.Writer)
	},
}

// keepWatch is the watchdog.
func keepWatch(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	var order watchOrder
	text, err := lines.ReadString('\n')
	if err == nil {
		err = json.Unmarshal([]byte(text), &order)
	}
	if err != nil {
		return fmt.Errorf("sweep starts this, and nobody else: %w", err)
	}
	card, governor, err := openWatched(order.Card)
	if err != nil {
		fmt.Fprintln(out, err)
		return err
	}
	defer card.Close()
	fmt.Fprintln(out, watchReady)
	told, _ := lines.ReadString('\n') // an end tells as much
	if told == watchDone+"\n" {
		return nil
	}
	by := byHand(order.Original, card.Info())
	if err := order.Original.Restore(governor); err != nil {
		return fmt.Errorf("the watchdog of a sweep could not put back the card's power limit of %g W: %w: put it back by %s", order.Original.Cap, err, by)
	}
	if told == watchRestore+"\n" {
		return nil
	}
	return fmt.Errorf("the sweep was killed; %s", isBack(order.Original))
}

// openWatched opens a card without running anything on it.
func openWatched(id string) (power.Card, power.Governor, error) {
	var card power.Card
	if strings.HasPrefix(id, simulatedDevice) {
		m, err := openMachine(id, 0)
		if err != nil {
			return nil, nil, err
		}
		card = m.Card()
	} else {
		var err error
		if card, err = power.Open(id); err != nil {
			return nil, nil, err
		}
	}
	governor, err := power.Govern(card)
	if err != nil {
		return nil, nil, errors.Join(err, card.Close())
	}
	return card, governor, nil
}

// watchdog is the sweep's end of it.
type watchdog struct {
	process *exec.Cmd
	to      io.WriteCloser
	ended   chan error // of its end, which stays there
}

// watchPatience is how long it may take to begin or to end.
const watchPatience = 20 * time.Second

// startWatchdog starts the process and waits until it is ready. It holds the card's lock, too, unless that
// is nil: no other sweep begins before it has ended.
func startWatchdog(id string, lock *os.File, original sweep.Original) (sweep.Watchdog, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := exec.Command(program, sweepGuardCommand.Name)
	p.Args[0] = os.Args[0]
	p.Stderr = os.Stderr
	if lock != nil {
		p.ExtraFiles = []*os.File{lock}
	}
	detach(p)
	to, err := p.StdinPipe()
	if err != nil {
		return nil, err
	}
	from, err := p.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.Start(); err != nil {
		return nil, err
	}
	w := &watchdog{p, to, make(chan error, 1)}
	said := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(from).ReadString('\n')
		said <- strings.TrimSpace(line)
		w.ended <- p.Wait()
	}()
	order, err := json.Marshal(watchOrder{id, original})
	if err == nil {
		_, err = to.Write(append(order, '\n'))
	}
	if err == nil {
		select {
		case line := <-said:
			if line != watchReady {
				err = fmt.Errorf("it says %q", line)
			}
		case <-time.After(watchPatience):
			err = fmt.Errorf("it is not ready after %v", watchPatience)
		}
	}
	if err != nil {
		_ = p.Process.Kill() // nothing was changed that it could put back
		return nil, err
	}
	return w, nil
}

// Alive looks whether it is there.
func (w *watchdog) Alive() error {
	select {
	case err := <-w.ended:
		w.ended <- err
		return fmt.Errorf("it ended: %v", err)
	default:
		return nil
	}
}

// Done tells it that all is well.
func (w *watchdog) Done() error { return w.tell(watchDone) }

// Restore tells it to put the settings back.
func (w *watchdog) Restore() error { return w.tell(watchRestore) }

func (w *watchdog) tell(what string) error {
	if _, err := io.WriteString(w.to, what+"\n"); err != nil {
		return fmt.Errorf("the watchdog is gone: %w", err)
	}
	_ = w.to.Close() // which its end may have done by now
	select {
	case err := <-w.ended:
		w.ended <- err
		return err
	case <-time.After(watchPatience):
		return fmt.Errorf("the watchdog does not end within %v", watchPatience)
	}
}
