package collective

import (
	"context"
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/profile"
)

// Host is a set of cards in one machine that exchange data.
type Host struct {
	// Machines are the cards. Operands must fit the smallest one.
	Machines []measure.Machine
	joint    *Joint
	backend  backend
}

// backend runs collectives and products on all cards.
type backend interface {
	// prepare uploads candidates and allocates buffers of the given size on every card. It checks the results of products and
	// collective.
	prepare(ctx context.Context, all []measure.Candidate, op cuda.Collective, bytes int64) error
	// load returns a load of all cards: a candidate's products, the collective, or both at once. candidate is negative for no
	// products. buffers is 0 or 1, for buffers with the same contents, and negative for no collective.
	load(name string, candidate, buffers int) power.Load
	// sequence returns a launch sequence of the first candidate's products, of the collective, and of both.
	sequence(ctx context.Context) (profile.Launcher, error)
	// library returns NCCL's version; empty for simulated cards.
	library() string
	close() error
}

// ErrTooFew is the error for fewer cards than a collective needs.
var ErrTooFew = errors.New("a collective needs at least two cards of one host: name them, as in --device 0,1")

// Open opens the GPUs with the given CUDA numbers. [measure.NoGPU] returns true for an error if this host cannot exchange data
// between cards, for example without NCCL.
func Open(indices []int) (*Host, error) {
	if len(indices) < 2 {
		return nil, ErrTooFew
	}
	h, g := &Host{}, &gpus{}
	h.backend = g
	var cards []power.Card
	clock := power.HostClock()
	var clocks []power.Clock
	for _, i := range indices {
		m, device, err := measure.OpenShared(i)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("card %d: %w", i, err), h.Close())
		}
		h.Machines, g.devices = append(h.Machines, m), append(g.devices, device)
		cards, clocks = append(cards, m.Card()), append(clocks, clock)
	}
	h.joint = NewJoint(cards, clocks)
	group, err := cuda.NewGroup(g.devices)
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	g.group = group
	return h, nil
}

// Simulated returns a host with the given number of simulated cards. Each card has its own random noise.
func Simulated(o power.SimOptions, cards int) (*Host, error) {
	if cards < 2 {
		return nil, ErrTooFew
	}
	h, s := &Host{}, &simulated{}
	h.backend = s
	var all []power.Card
	var clocks []power.Clock
	for range cards {
		o.Seed++
		m, err := measure.OpenSimulated(o)
		if err != nil {
			return nil, errors.Join(err, h.Close())
		}
		h.Machines = append(h.Machines, m)
		all, clocks = append(all, m.Card()), append(clocks, m.Clock())
		s.sims = append(s.sims, m.Card().(*power.Sim))
	}
	h.joint = NewJoint(all, clocks)
	s.joint = h.joint
	return h, nil
}

// Close closes all cards. It is idempotent.
func (h *Host) Close() error {
	var errs []error
	if h.backend != nil {
		errs = append(errs, h.backend.close())
	}
	for _, m := range h.Machines {
		errs = append(errs, m.Close())
	}
	h.Machines = nil
	return errors.Join(errs...)
}
