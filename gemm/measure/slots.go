package measure

import (
	"context"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// slots are places in the card's memory. Every candidate is copied to the current slot before it runs, so all candidates run
// at the same addresses.
type slots struct {
	sources []Batch // the candidates
	places  []Batch
	holds   []int // the candidate in each place
	now     int
}

// newSlots allocates places for candidates of the baseline's products.
func newSlots(ctx context.Context, m Machine, n int, products []cuda.Product, on cuda.Options) (*slots, error) {
	s := &slots{}
	for range n {
		b, err := m.NewBatch(ctx, "slot", products, on)
		if err != nil {
			return s, err
		}
		s.places, s.holds = append(s.places, b), append(s.holds, -1)
	}
	return s, nil
}

// add adds a candidate and checks its results in every slot. Without slots the candidate keeps its own memory.
func (s *slots) add(ctx context.Context, b Batch) (load power.Load, worst []gemm.Deviation, err error) {
	if len(s.places) == 0 {
		worst, err = b.Check(ctx)
		return b, worst, err
	}
	s.sources = append(s.sources, b)
	c := slotted{s, len(s.sources) - 1}
	for i := range s.places {
		s.now = i
		place, err := c.place()
		if err != nil {
			return nil, nil, err
		}
		found, err := place.Check(ctx)
		if err != nil {
			return nil, nil, err
		}
		worst = append(worst, found...)
	}
	return c, worst, nil
}

// arrange makes a slot the current one.
func (s *slots) arrange(_ context.Context, slot int) error {
	s.now = slot
	return nil
}

func (s *slots) close() {
	for _, b := range s.places {
		_ = b.Close() // on an error the machine's Close frees the memory
	}
}

// slotted is a candidate in the current slot.
type slotted struct {
	slots     *slots
	candidate int
}

// place is the current slot, with the candidate in it.
func (c slotted) place() (Batch, error) {
	s := c.slots
	to := s.places[s.now]
	if s.holds[s.now] == c.candidate {
		return to, nil
	}
	s.holds[s.now] = -1 // after an error the contents are undefined
	if err := to.Copy(s.sources[c.candidate]); err != nil {
		return nil, err
	}
	s.holds[s.now] = c.candidate
	return to, nil
}

func (c slotted) Name() string { return c.slots.sources[c.candidate].Name() }

func (c slotted) Start(n int) error {
	b, err := c.place()
	if err != nil {
		return err
	}
	return b.Start(n)
}

// Pace paces the candidate in every slot, because all candidates have the same pace.
func (c slotted) Pace(ctx context.Context, every time.Duration) error {
	for _, p := range c.slots.places {
		if err := p.Pace(ctx, every); err != nil {
			return err
		}
	}
	return nil
}

func (c slotted) Rest(n int) error              { return c.slots.places[c.slots.now].Rest(n) }
func (c slotted) Bursts() (power.Bursts, error) { return c.slots.places[c.slots.now].Bursts() }

func (c slotted) Wait(ctx context.Context) error  { return c.slots.places[c.slots.now].Wait(ctx) }
func (c slotted) Elapsed() (time.Duration, error) { return c.slots.places[c.slots.now].Elapsed() }
