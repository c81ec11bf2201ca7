package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// A run queues its work in pieces of about pieceTime, or of one launch if that takes longer. ahead pieces are queued at
// any time, which keeps the card busy. A longer queue would only take longer to drain after a cancellation.
const (
	ahead     = 3
	pieceTime = 25 * time.Millisecond
	pollEvery = 200 * time.Microsecond
)

var errCancelled = errors.New("the run was cancelled before all of its work was done")

// supply queues the work of a run, piece by piece. Its methods are called on the device's thread.
type supply interface {
	// next queues the next piece and returns an event after the piece, or 0 if no work is left.
	next() (mark uintptr, err error)
	// ended is called for every piece that has ended, in order.
	ended() error
}

// run is the state of one call of Start.
type run struct {
	name      string
	cancelled atomic.Bool
	done      chan struct{} // closed when the card has finished the run
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

// end cancels a run, if there is one, and waits until its queued work is done.
func (r *run) end() {
	if r != nil {
		r.cancel()
		<-r.done
	}
}

// wait waits until the run has ended. If ctx ends first, wait cancels the run.
func (r *run) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		r.cancel()
		return ctx.Err()
	}
}

// occupy makes r the device's current run. It returns an error while another run is active. After a cancelled run, it
// waits for that run's queued work.
func (d *Device) occupy(r *run) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.current; c != nil {
		if !c.cancelled.Load() && !c.over() {
			return fmt.Errorf("%s: %s is running on this GPU: call Wait for it first", r.name, c.name)
		}
		<-c.done
	}
	if d.closed {
		return fmt.Errorf("%s: %w", r.name, errClosed)
	}
	d.current = r
	return nil
}

// start queues the first pieces of s and returns at once. Another goroutine queues the remaining pieces. If the device
// is busy, the returned run is nil. If a piece could not be queued, the returned run has ended.
func (d *Device) start(name string, s supply) (*run, error) {
	r := newRun(name)
	if err := d.occupy(r); err != nil {
		return nil, err
	}
	var marks []uintptr
	if err := d.thread.do(func() (err error) { marks, err = begun(s); return err }); err != nil {
		return r, d.failed(r, err)
	}
	go func() { // Wait returns the run's error
		if err := d.feed(r, s, marks); err != nil {
			_ = d.failed(r, err)
		} else {
			_ = r.finish(nil)
		}
	}()
	return r, nil
}

// failed ends a run with err after its queued work is done.
func (d *Device) failed(r *run, err error) error {
	_ = d.thread.do(d.sync) // this call fails as well on a failed card
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

// feed queues a new piece whenever a piece has ended, and finally waits for all pieces. marks are the events of the
// queued pieces, oldest first.
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

// await polls until the card has reached event. The device's thread stays free between polls.
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

// release runs f, which frees memory, on the device's thread. It does nothing on a closed device, because closing frees
// all memory.
func (d *Device) release(f func() error) error {
	if err := d.thread.do(f); !errors.Is(err, errClosed) {
		return err
	}
	return nil
}
