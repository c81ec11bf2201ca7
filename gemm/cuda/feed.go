package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// The card is kept busy by queueing pieces of about pieceTime (or one launch, where that takes
// longer), and `ahead` of them before the first has ended. A deeper queue would only drain later when
// the wait for it is cancelled.
const (
	ahead     = 3
	pieceTime = 25 * time.Millisecond
	pollEvery = 200 * time.Microsecond
)

var errCancelled = errors.New("what was left was cancelled")

// supply is work for the card, piece by piece. Its methods are called on the device's thread.
type supply interface {
	// next queues the next piece and gives an event behind it, or 0 where nothing is left.
	next() (mark uintptr, err error)
	// ended is called for every piece that has ended, in their order.
	ended() error
}

// run is one Start.
type run struct {
	name      string
	cancelled atomic.Bool
	done      chan struct{} // closed when the card has nothing of it left
	err       error         // valid once done is closed
}

func newRun(name string) *run { return &run{name: name, done: make(chan struct{})} }

func (r *run) cancel() { r.cancelled.Store(true) }

func (r *run) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

func (r *run) finish(err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", r.name, err)
	}
	r.err = err
	close(r.done)
	return err
}

// end cancels a run, if there is one, and waits until the card has nothing of it left.
func (r *run) end() {
	if r != nil {
		r.cancel()
		<-r.done
	}
}

// wait returns when the run is over, or cancels it as soon as ctx is done.
func (r *run) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		r.cancel()
		return ctx.Err()
	}
}

// occupy makes r the device's current run. It fails while another is under way, and waits for a
// cancelled one to drain.
func (d *Device) occupy(r *run) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.current; c != nil {
		if !c.cancelled.Load() && !c.over() {
			return fmt.Errorf("%s: %s is under way on this GPU: wait for it first", r.name, c.name)
		}
		<-c.done
	}
	if d.closed {
		return fmt.Errorf("%s: %w", r.name, errClosed)
	}
	d.current = r
	return nil
}

// start queues the first pieces of s and returns at once; another goroutine queues the others. The
// run is nil where the device was not free, and over where a piece could not be queued.
func (d *Device) start(name string, s supply) (*run, error) {
	r := newRun(name)
	if err := d.occupy(r); err != nil {
		return nil, err
	}
	var marks []uintptr
	if err := d.thread.do(func() (err error) { marks, err = begun(s); return err }); err != nil {
		return r, d.failed(r, err)
	}
	go func() { // Wait returns its error
		if err := d.feed(r, s, marks); err != nil {
			_ = d.failed(r, err)
		} else {
			_ = r.finish(nil)
		}
	}()
	return r, nil
}

// failed ends a run when what it had queued has drained.
func (d *Device) failed(r *run, err error) error {
	_ = d.thread.do(d.sync) // a card that failed says so here as well
	return r.finish(err)
}

// begun queues the first pieces.
func begun(s supply) (marks []uintptr, err error) {
	for len(marks) < ahead {
		mark, err := s.next()
		if err != nil || mark == 0 {
			return marks, err
		}
		marks = append(marks, mark)
	}
	return marks, nil
}

// feed queues a piece whenever one has ended, and waits for the end of all. The marks are of the pieces
// on the card, the oldest first.
func (d *Device) feed(r *run, s supply, marks []uintptr) error {
	left := true
	for len(marks) > 0 {
		if err := d.await(marks[0]); err != nil {
			return err
		}
		marks = marks[1:]
		err := d.thread.do(func() error {
			if left && !r.cancelled.Load() {
				mark, err := s.next()
				if err != nil {
					return err
				}
				if left = mark != 0; left {
					marks = append(marks, mark)
				}
			}
			return s.ended()
		})
		if err != nil {
			return err
		}
	}
	if left {
		return errCancelled
	}
	return nil
}

// await polls until event has happened, so that the device's thread stays free meanwhile.
func (d *Device) await(event uintptr) error {
	for {
		var yes bool
		err := d.thread.do(func() (err error) { yes, err = d.happened(event); return err })
		if err != nil || yes {
			return err
		}
		time.Sleep(pollEvery)
	}
}

// giveBack runs f on the device's thread. Where the device is closed there is nothing left to give
// back: it took everything with it.
func (d *Device) giveBack(f func() error) error {
	if err := d.thread.do(f); !errors.Is(err, errClosed) {
		return err
	}
	return nil
}
