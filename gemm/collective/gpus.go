package collective

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/profile"
	"github.com/lowtoggle/lowtoggle/weights"
)

// gpus is a [backend] of real cards with a communicator.
type gpus struct {
	devices []*cuda.Device
	group   *cuda.Group
	batches [][]*cuda.Batch // by candidate and card
	place   []*cuda.Batch   // on each card; candidates are copied here before they run, so that all have the same addresses
	holds   int             // number of the candidate in place, plus 1; 0: undefined
}

func (g *gpus) library() string { return g.group.Version() }

func (g *gpus) prepare(ctx context.Context, all []measure.Candidate, op cuda.Collective, bytes int64) error {
	put := func(c measure.Candidate) (own []*cuda.Batch, err error) {
		for _, d := range g.devices {
			b, err := d.NewBatch(ctx, c.Name, c.Products, cuda.Options{Repeat: 1})
			if err != nil {
				return nil, err
			}
			own = append(own, b)
		}
		return own, nil
	}
	var err error
	if g.place, err = put(all[0]); err != nil {
		return err
	}
	for i, c := range all {
		own, err := put(c)
		if err != nil {
			return err
		}
		g.batches = append(g.batches, own)
		if err := g.settle(i); err != nil {
			return err
		}
		for _, b := range g.place {
			if _, err := b.Check(ctx); err != nil {
				return err
			}
		}
	}
	// A block of random values; the buffers repeat it.
	const block = 1 << 20
	data, err := pattern.MustParse("normal(0,1)").Generate(ctx, pattern.Spec{DType: weights.BF16, Rows: block / 1024, Cols: 1024, Seed: 1}, 0)
	if err != nil {
		return err
	}
	return g.group.Prepare(ctx, op, bytes, data)
}

// settle copies a candidate to place, unless the candidate is there already.
func (g *gpus) settle(candidate int) error {
	if candidate < 0 || g.holds == candidate+1 {
		return nil
	}
	g.holds = 0
	for i, b := range g.place {
		if err := b.Copy(g.batches[candidate][i]); err != nil {
			return err
		}
	}
	g.holds = candidate + 1
	return nil
}

func (g *gpus) load(name string, candidate, buffers int) power.Load {
	return &gpuLoad{name: name, gpus: g, candidate: candidate, buffers: buffers}
}

func (g *gpus) sequence(ctx context.Context) (profile.Launcher, error) {
	if err := g.settle(0); err != nil {
		return nil, err
	}
	t, err := g.group.NewSequence(ctx, "profile", g.place)
	if err != nil {
		return nil, err // not a nil *cuda.GroupSequence in an interface
	}
	return t, nil
}

func (g *gpus) close() error {
	var errs []error
	if g.group != nil {
		errs = append(errs, g.group.Close())
	}
	return errors.Join(errs...) // closing the devices frees their memory
}

// gpuLoad is a [power.Load] that runs on all cards.
type gpuLoad struct {
	name               string
	gpus               *gpus
	candidate, buffers int
	run                *cuda.GroupRun
}

func (l *gpuLoad) Name() string { return l.name }

func (l *gpuLoad) Start(n int) (err error) {
	if err := l.gpus.settle(l.candidate); err != nil {
		return err
	}
	var batches []*cuda.Batch
	if l.candidate >= 0 {
		batches = l.gpus.place
	}
	l.run, err = l.gpus.group.Start(l.name, batches, l.buffers, n)
	return err
}

func (l *gpuLoad) Wait(ctx context.Context) error {
	if l.run == nil {
		return fmt.Errorf("%s: nothing was started", l.name)
	}
	return l.run.Wait(ctx)
}

func (l *gpuLoad) Elapsed() (time.Duration, error) { return l.run.Elapsed() }
