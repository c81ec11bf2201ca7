package sweep

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

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// A killed sweep cannot restore the card's settings, so a second process does. It receives the original settings before
// anything is changed, and reads from a pipe whose other end only the sweep holds. A line on the pipe is a command. If
// the pipe ends without a line, the sweep was killed.
const (
	watchReady   = "ready"
	watchDone    = "done"    // the settings are restored
	watchRestore = "restore" // the sweep cannot restore them
)

// watchOrder is the first line on the pipe.
type watchOrder struct {
	Card     string   `json:"card"`
	Original Original `json:"original"`
}

// ServeWatchdog is the watchdog's side. Call it in the process that [StartWatchdog] starts, with its standard input and
// output. open opens the card by the name that was passed to StartWatchdog, and must not run anything on it.
// ServeWatchdog ignores interrupts and the end of the terminal. It returns nil if the sweep was not killed.
func ServeWatchdog(in io.Reader, out io.Writer, open func(card string) (power.Card, error)) (err error) {
	if in == nil || out == nil || open == nil {
		return errors.New("a watchdog needs input, output and a function that opens the card")
	}
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	lines := bufio.NewReader(in)
	var order watchOrder
	text, err := lines.ReadString('\n')
	if err == nil {
		err = json.Unmarshal([]byte(text), &order)
	}
	if err != nil {
		return fmt.Errorf("the watchdog received no valid order (only a sweep can start the watchdog): %w", err)
	}
	card, governor, err := openGovernor(order.Card, open)
	if err != nil {
		fmt.Fprintln(out, err)
		return err
	}
	defer func() { err = errors.Join(err, card.Close()) }()
	fmt.Fprintln(out, watchReady)
	told, _ := lines.ReadString('\n') // an error means that the sweep has ended
	if told == watchDone+"\n" {
		return nil
	}
	if err := order.Original.Restore(governor); err != nil {
		return fmt.Errorf("the watchdog of a sweep could not restore the card's power limit of %g W: %w: restore the limit with %s", order.Original.Cap, err, order.Original.Command(card.Info().UUID))
	}
	if err := forget(order.Card); err != nil {
		return err
	}
	if told == watchRestore+"\n" {
		return nil
	}
	return fmt.Errorf("the sweep was killed; %v", order.Original)
}

func openGovernor(name string, open func(string) (power.Card, error)) (power.Card, power.Governor, error) {
	card, err := open(name)
	if err != nil {
		return nil, nil, err
	}
	governor, err := power.Govern(card)
	if err != nil {
		return nil, nil, errors.Join(err, card.Close())
	}
	return card, governor, nil
}

// watchdog is the sweep's side.
type watchdog struct {
	card    string
	process *exec.Cmd
	to      io.WriteCloser
	ended   chan error // how the process ended; the value stays in the channel
}

// watchPatience is the longest time for the watchdog to start or end.
const watchPatience = 20 * time.Second

// StartWatchdog starts a process that must call [ServeWatchdog], and waits until the watchdog is ready. The name card
// is passed to its function open. The process inherits the card's lock, unless lock is nil, so that no other sweep
// starts before the process has ended.
//
// Until the settings are restored, they are also kept in a file for [RestoreLeft].
func StartWatchdog(p *exec.Cmd, card string, lock *os.File, original Original) (Watchdog, error) {
	if p == nil {
		return nil, errors.New("a watchdog needs a command to start")
	}
	if err := remember(card, original); err != nil {
		return nil, err
	}
	w, err := startWatchdog(p, card, lock, original)
	if err != nil {
		return nil, errors.Join(err, forget(card)) // nothing has been changed yet
	}
	return w, nil
}

func startWatchdog(p *exec.Cmd, card string, lock *os.File, original Original) (*watchdog, error) {
	if lock != nil {
		p.ExtraFiles = []*os.File{lock}
	}
	ownSession(p)
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
	w := &watchdog{card, p, to, make(chan error, 1)}
	said := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(from).ReadString('\n')
		said <- strings.TrimSpace(line)
		w.ended <- p.Wait()
	}()
	order, err := json.Marshal(watchOrder{card, original})
	if err == nil {
		_, err = to.Write(append(order, '\n'))
	}
	if err == nil {
		select {
		case line := <-said:
			if line != watchReady {
				err = fmt.Errorf("the watchdog answered %q", line)
			}
		case <-time.After(watchPatience):
			err = fmt.Errorf("the watchdog was not ready after %v: run the sweep again when the machine is less busy", watchPatience)
		}
	}
	if err != nil {
		_ = p.Process.Kill()
		return nil, err
	}
	return w, nil
}

// Alive returns an error if the process has ended.
func (w *watchdog) Alive() error {
	select {
	case err := <-w.ended:
		w.ended <- err
		return fmt.Errorf("the watchdog's process ended: %v", err)
	default:
		return nil
	}
}

// Done tells the process that the settings are restored.
func (w *watchdog) Done() error { return errors.Join(forget(w.card), w.tell(watchDone)) }

// Restore tells the process to restore the settings.
func (w *watchdog) Restore() error { return w.tell(watchRestore) }

func (w *watchdog) tell(what string) error {
	if _, err := io.WriteString(w.to, what+"\n"); err != nil {
		return fmt.Errorf("the watchdog has ended: %w", err)
	}
	_ = w.to.Close() // the process may have closed its end already
	select {
	case err := <-w.ended:
		w.ended <- err
		return err
	case <-time.After(watchPatience):
		return fmt.Errorf("the watchdog did not end within %v", watchPatience)
	}
}
