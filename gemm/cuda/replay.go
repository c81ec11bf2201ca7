package cuda

import (
	"context"
	"fmt"
	"time"
)

// Start queues n replays, which begin immediately, and returns at once. It fails while another batch or
// sequence is running, and waits for the queued work of a cancelled one.
func (b *Batch) Start(n int) error {
	if n < 1 {
		return fmt.Errorf("batch %s: %d replays", b.name, n)
	}
	r, err := b.device.start("batch "+b.name, &replays{batch: b, left: n, chunk: max(1, int(pieceTime/max(b.replay, 1)))})
	if r != nil {
		b.run = r
	}
	return err
}

// replays is the rest of one Start.
type replays struct {
	batch       *Batch
	left, chunk int // chunk replays are a piece
	pieces      int // queued so far
}

func (r *replays) next() (mark uintptr, err error) {
	b, now := r.batch, min(r.chunk, r.left)
	if now == 0 {
		return 0, nil
	}
	if r.pieces == 0 {
		if err := b.device.mark(b.begin); err != nil {
			return 0, err
		}
	}
	mark = b.marks[r.pieces%ahead] // of a piece that has already ended
	if r.left == now {
		mark = b.end
	}
	if err := b.device.replay(b.exec, now); err != nil {
		return 0, err
	}
	r.left, r.pieces = r.left-now, r.pieces+1
	return mark, b.device.mark(mark)
}

func (r *replays) ended() error { return nil }

// Wait returns when all replays have run, with the card's error if there was one, or as soon as ctx is done.
// The card then stops after the work already queued: a tenth of a second, or three replays.
func (b *Batch) Wait(ctx context.Context) error {
	if b.run == nil {
		return fmt.Errorf("batch %s: nothing was started", b.name)
	}
	return b.run.wait(ctx)
}

// Elapsed is the card's time for the replays of the last Start, by its own clock. It fails if they have not
// all run.
func (b *Batch) Elapsed() (took time.Duration, err error) {
	switch {
	case b.run == nil || !b.run.over():
		return 0, fmt.Errorf("batch %s: no replays have ended", b.name)
	case b.run.err != nil:
		return 0, b.run.err
	}
	err = b.device.thread.do(func() (err error) { took, err = b.device.between(b.begin, b.end); return err })
	return took, err
}
