package measure

import (
	"context"
	"errors"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// resident holds the candidates of a comparison that are on the card.
type resident struct {
	batches []Batch
	memory  common
	loads   power.Loads
	apart   []Batch // candidates in their own memory
	forced  []Batch // candidates in apart that did not ask for their own memory ([Candidate].Apart is false)
}

// add uploads a candidate and checks its results. The first candidate is the baseline. The second candidate is the
// baseline's copy, whose memory becomes the common memory. The baseline itself is checked after its copy has been
// added.
func (r *resident) add(ctx context.Context, m Machine, c Candidate, on cuda.Options) ([]gemm.Deviation, error) {
	b, err := m.NewBatch(ctx, c.Name, c.Products, on)
	if err != nil {
		return nil, err
	}
	r.batches = append(r.batches, b)
	switch len(r.batches) {
	case 1:
		return nil, nil
	case 2:
		r.memory.place = b
		base, null := r.guest(r.batches[0], r.batches[0].Name()), r.guest(r.batches[0], c.Name)
		r.loads.Baseline, r.loads.Null = base, null
		found, err := base.check(ctx)
		if err != nil {
			return nil, err
		}
		again, err := null.check(ctx)
		return append(found, again...), err
	}
	if !c.Apart {
		g := r.guest(b, c.Name)
		found, err := g.check(ctx)
		if !errors.Is(err, cuda.ErrOtherForm) {
			r.loads.Variants = append(r.loads.Variants, g)
			return found, err
		}
		r.forced = append(r.forced, b)
	}
	r.apart, r.loads.Variants = append(r.apart, b), append(r.loads.Variants, b)
	return b.Check(ctx)
}

func (r *resident) guest(source Batch, name string) *guest { return &guest{&r.memory, source, name} }

// close frees the candidates' memory. If close fails, the machine's Close frees the memory.
func (r *resident) close() {
	for _, b := range r.batches {
		_ = b.Close()
	}
}

// common is memory on the card that all candidates share. Every candidate is copied there before it runs, so all have
// the same addresses. Different addresses would change energy and time by some tenths of a per cent.
type common struct {
	place Batch
	holds *guest // nil: contents undefined
}

// guest is a candidate that runs in the common memory.
type guest struct {
	memory *common
	source Batch
	name   string
}

// settle copies the candidate to the common memory, unless it is already there.
func (g *guest) settle() error {
	m := g.memory
	if m.holds == g {
		return nil
	}
	m.holds = nil // after an error the contents are undefined
	if err := m.place.Copy(g.source); err != nil {
		return err
	}
	m.holds = g
	return nil
}

// check checks the candidate's results while it is in the common memory.
func (g *guest) check(ctx context.Context) ([]gemm.Deviation, error) {
	if err := g.settle(); err != nil {
		return nil, err
	}
	return g.memory.place.Check(ctx)
}

func (g *guest) Name() string { return g.name }

func (g *guest) Start(n int) error {
	if err := g.settle(); err != nil {
		return err
	}
	return g.memory.place.Start(n)
}

// Pace sets the pace of all candidates, because they run in the same memory.
func (g *guest) Pace(ctx context.Context, every time.Duration) error {
	return g.memory.place.Pace(ctx, every)
}

func (g *guest) Rest(n int) error                { return g.memory.place.Rest(n) }
func (g *guest) Bursts() (power.Bursts, error)   { return g.memory.place.Bursts() }
func (g *guest) Wait(ctx context.Context) error  { return g.memory.place.Wait(ctx) }
func (g *guest) Elapsed() (time.Duration, error) { return g.memory.place.Elapsed() }
