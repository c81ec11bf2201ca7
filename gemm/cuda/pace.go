package cuda

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

//go:embed kernels/pace.cu
var paceSource string

// burstTime is the least duration of a burst, if the products allow it. It is much longer than a kernel launch and much
// shorter than the averaging window of the power sensors.
const burstTime = time.Millisecond

// pacer holds the kernel, state and graphs with which a batch pauses between bursts.
type pacer struct {
	wait       *Function
	state      uint64  // address of the state of kernels/pace.cu
	work, rest uintptr // graphs of one execution, and of its gaps alone
	every      time.Duration
}

// Bursts describes the bursts of a run, by the card's clocks.
type Bursts struct {
	Count int
	Busy  time.Duration // total duration of all bursts
	// Clock is a multiprocessor's mean clock during the bursts in MHz: its cycles divided by the time of the global
	// timer. 0: unknown.
	Clock float64
}

// Pace makes every later execution last at least the time every: its products run in bursts of about a millisecond,
// with a gap after each burst. While the batch is paced, [Batch.Bursts] measures the bursts. A time shorter than an
// execution leaves no gaps. 0 runs products back to back, as before the first call. The first call compiles a kernel
// ([ErrNoCompiler]). The batch must not be running.
func (b *Batch) Pace(ctx context.Context, every time.Duration) error {
	if every == 0 && b.pace.wait == nil {
		return nil
	}
	err := b.makePacer(ctx)
	if err == nil {
		err = b.device.thread.do(func() error {
			var period [8]byte
			binary.LittleEndian.PutUint64(period[:], math.Float64bits(float64(every)))
			return b.device.upload(b.pace.state, period[:])
		})
	}
	if err != nil {
		return fmt.Errorf("batch %s: %w", b.name, err)
	}
	b.pace.every = every
	return nil
}

// makePacer compiles the kernel and captures the graphs on its first call.
func (b *Batch) makePacer(ctx context.Context) error {
	p := &b.pace
	if p.wait != nil {
		return nil
	}
	if len(b.layers) < len(b.work) {
		return errors.New("a batch with traffic cannot run in bursts")
	}
	m, err := b.device.pacing.compile(ctx, b.device, "pace.cu", paceSource)
	if err != nil {
		return err
	}
	wait, err := m.Function("pace", 0)
	if err != nil {
		return err
	}
	return b.device.thread.do(func() error {
		err := first(
			func() (err error) { p.state, err = b.device.alloc(paceBytes); return err },
			func() error { p.wait = wait; return b.launchPace(0) }, // a kernel cannot be loaded during recording
			b.device.sync,
			func() (err error) { p.work, err = b.device.capture(func() error { return b.bursts(true) }); return err },
			func() (err error) {
				p.rest, err = b.device.capture(func() error { return b.bursts(false) })
				return err
			},
		)
		if err != nil {
			p.wait = nil
			err = errors.Join(err, p.free(b.device))
		}
		return err
	})
}

func (b *Batch) launchPace(share float64) error {
	return b.pace.wait.Launch(Grid{}, Grid{}, Address(b.pace.state), share)
}

// bursts queues the work of an execution in bursts, with a wait after each burst. If work is false, it queues only the
// waits.
func (b *Batch) bursts(work bool) error {
	all := 0.0
	for _, l := range b.layers {
		all += l.problem.Ops()
	}
	all *= float64(b.passes)
	enough := burstTime.Seconds() / b.replay.Seconds()
	share, left := 0.0, b.passes*len(b.layers)
	for pass := range b.passes {
		for _, l := range b.layers {
			if work {
				if err := l.launch(pass % b.copies); err != nil {
					return err
				}
			}
			share += l.problem.Ops() / all
			if left--; left > 0 && share < enough {
				continue
			}
			if err := b.launchPace(share); err != nil {
				return err
			}
			share = 0
		}
	}
	return nil
}

// Start queues n replays; see [Graph.Start].
func (b *Batch) Start(n int) error {
	if b.pace.every == 0 {
		return b.Graph.Start(n)
	}
	return b.startPaced(b.pace.work, n)
}

// Rest is Start without the products. Each gap lasts as long as a burst and its gap.
func (b *Batch) Rest(n int) error {
	if b.pace.every == 0 {
		return fmt.Errorf("batch %s: the batch is not paced: call Pace first", b.name)
	}
	return b.startPaced(b.pace.rest, n)
}

func (b *Batch) startPaced(exec uintptr, n int) error {
	return b.launchAll(&replays{
		graph: &b.Graph, exec: exec, left: n, chunk: max(1, int(pieceTime/max(b.replay, b.pace.every))),
		before: func() error { return b.launchPace(0) },
	})
}

// paceBytes is the size in bytes of struct Pace in kernels/pace.cu.
const paceBytes = 64

// Bursts describes the bursts of the last Start. It returns an error if the batch is not paced or has not ended.
func (b *Batch) Bursts() (Bursts, error) {
	if _, err := b.Elapsed(); err != nil {
		return Bursts{}, err
	}
	if b.pace.every == 0 {
		return Bursts{}, fmt.Errorf("batch %s: the batch is not paced: call Pace first", b.name)
	}
	var state [paceBytes]byte
	if err := b.device.thread.do(func() error { return b.device.download(state[:], b.pace.state) }); err != nil {
		return Bursts{}, err
	}
	field := func(i int) uint64 { return binary.LittleEndian.Uint64(state[8*i:]) }
	found := Bursts{Count: int(field(4)), Busy: time.Duration(field(5))}
	const highest = 1e4 // in MHz; a higher result means that the counter stopped between the two kernels
	if counted := field(6); counted > 0 {
		if clock := 1e3 * float64(field(7)) / float64(counted); clock < highest {
			found.Clock = clock
		}
	}
	return found, nil
}

// free frees the pacer's state and graphs. It must be called on the device's thread.
func (p *pacer) free(d *Device) error {
	errs := []error{d.destroyGraph(&p.work), d.destroyGraph(&p.rest)}
	if p.state != 0 {
		errs = append(errs, d.free(p.state))
		p.state = 0
	}
	return errors.Join(errs...)
}
