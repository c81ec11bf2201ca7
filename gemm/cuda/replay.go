package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// The card is kept busy by queueing chunks of replays, of about chunkTime (or one replay, where
// that takes longer), and `ahead` of them before the first has ended. A deeper queue would only
// drain later when the wait for it is cancelled.
const (
	ahead     = 3
	chunkTime = 25 * time.Millisecond
	pollEvery = 200 * time.Microsecond
)

var errCancelled = errors.New("the replays were cancelled")

// run is one Start.
type run struct {
	cancelled atomic.Bool
	done      chan struct{} // closed when the card has nothing of it left
	err       error         // valid once done is closed
}

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
	r.err = err
	close(r.done)
	return err
}

// Start queues n replays and returns at once; they begin immediately. It fails while another
// batch's replays are under way, and waits for cancelled ones to drain.
func (b *Batch) Start(n int) error {
	if n < 1 {
		return fmt.Errorf("batch %s: %d replays", b.name, n)
	}
	r := &run{done: make(chan struct{})}
	if err := b.device.occupy(r); err != nil {
		return fmt.Errorf("batch %s: %w", b.name, err)
	}
	b.run = r
	chunk := max(1, int(chunkTime/max(b.replay, 1)))
	left, err := b.begun(n, chunk)
	if err != nil {
		_ = b.device.thread.do(b.device.sync) // what was queued before the failure
		return r.finish(fmt.Errorf("batch %s: %w", b.name, err))
	}
	go func() {
		err := b.feed(r, left, chunk)
		if err != nil {
			err = fmt.Errorf("batch %s: %w", b.name, err)
		}
		_ = r.finish(err) // Wait returns it
	}()
	return nil
}

// occupy makes r the device's current run.
func (d *Device) occupy(r *run) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.current; c != nil {
		if !c.cancelled.Load() && !c.over() {
			return errors.New("replays are under way on this GPU: wait for them first")
		}
		<-c.done
	}
	if d.closed {
		return errClosed
	}
	d.current = r
	return nil
}

// begun queues the first chunks of n replays, and says how many replays are left to queue.
func (b *Batch) begun(n, chunk int) (left int, err error) {
	left = n
	err = b.device.thread.do(func() error {
		if err := b.device.mark(b.begin); err != nil {
			return err
		}
		for i := 0; i < ahead && left > 0; i++ {
			now := min(chunk, left)
			if err := b.queue(now, b.marks[i]); err != nil {
				return err
			}
			left -= now
		}
		return nil
	})
	return left, err
}

// feed queues what is left, a chunk whenever one has ended, and waits for the end.
func (b *Batch) feed(r *run, left, chunk int) error {
	for i := 0; left > 0 && !r.cancelled.Load(); i++ {
		mark, now := b.marks[i%ahead], min(chunk, left)
		if err := b.await(mark); err != nil {
			return err
		}
		if err := b.device.thread.do(func() error { return b.queue(now, mark) }); err != nil {
			return err
		}
		left -= now
	}
	if err := b.device.thread.do(func() error { return b.device.mark(b.end) }); err != nil {
		return err
	}
	if err := b.await(b.end); err != nil {
		return err
	}
	if left > 0 {
		return errCancelled
	}
	return nil
}

// await polls until event has happened, so that the device's thread stays free meanwhile.
func (b *Batch) await(event uintptr) error {
	for {
		var r result
		if err := b.device.thread.do(func() error {
			if r = b.device.api.cuEventQuery(event); r == errorNotReady {
				return nil
			}
			return b.device.api.check("a kernel", r)
		}); err != nil || r == success {
			return err
		}
		time.Sleep(pollEvery)
	}
}

// Wait returns when all replays have run, with the card's error if there was one, or as soon as
// ctx is done; the card then stops within the tenth of a second (or the three replays) already
// queued.
func (b *Batch) Wait(ctx context.Context) error {
	if b.run == nil {
		return fmt.Errorf("batch %s: nothing was started", b.name)
	}
	select {
	case <-b.run.done:
		return b.run.err
	case <-ctx.Done():
		b.run.cancel()
		return ctx.Err()
	}
}

// Elapsed is how long the card took for the replays of the last Start, by its own clock. It fails
// where they have not all run.
func (b *Batch) Elapsed() (took time.Duration, err error) {
	switch {
	case b.run == nil || !b.run.over():
		return 0, fmt.Errorf("batch %s: no replays have ended", b.name)
	case b.run.err != nil:
		return 0, b.run.err
	}
	err = b.device.thread.do(func() (err error) { took, err = b.between(b.begin, b.end); return err })
	return took, err
}
