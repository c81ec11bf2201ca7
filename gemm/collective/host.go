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

// Host is cards of one host that exchange data.
type Host struct {
	// Machines are the cards. Operands must fit the smallest one.
	Machines []measure.Machine
	joint    *Joint
	backend  backend
}

// backend runs collectives and products on all cards.
type backend interface {
	// prepare puts candidates and buffers of so many bytes on every card, and checks results of both.
	prepare(ctx context.Context, all []measure.Candidate, op cuda.Collective, bytes int64) error
	// load is work of all cards: a candidate's products, the collective, or both at once. A negative candidate is none. Buffers
	// are 0 or 1, with the same contents; negative: no collective.
	load(name string, candidate, buffers int) power.Load
	// sequence is a launch sequence of the first candidate: its products, the collective, and both.
	sequence(ctx context.Context) (profile.Launcher, error)
	// library is NCCL's version; empty for simulated cards.
	library() string
	close() error
}

// ErrTooFew marks a host with fewer cards than a collective needs.
var ErrTooFew = errors.New("a collective needs two cards of one host: name them, as in --device 0,1")

// Open opens the GPUs with CUDA's numbers. [measure.NoGPU] recognises errors that mean that this host cannot exchange data
// between cards, among them a missing NCCL.
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

// Simulated returns a host with the given number of simulated cards, which differ in their noise.
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
