package collective

import (
	"context"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/profile"
)

// simulated is a [backend] of simulated cards. Their numbers mean nothing.
type simulated struct {
	sims     []*power.Sim
	joint    *Joint
	products []power.SimKernel // the products of each candidate
	exchange power.SimKernel
}

const (
	simLink     = 3e11 // bytes per second of a card's links
	simExchange = 320  // watts of a collective
	simShared   = 0.9  // share of the shorter workload that overlaps the longer one
)

func (s *simulated) prepare(ctx context.Context, all []measure.Candidate, op cuda.Collective, bytes int64) error {
	s.products = nil
	for _, c := range all {
		k, err := measure.SimulatedKernel(ctx, c.Products)
		if err != nil {
			return err
		}
		s.products = append(s.products, k)
	}
	moved := BandwidthOf(op, bytes, len(s.sims), 1).Bus
	s.exchange = power.SimKernel{Watts: simExchange, Seconds: moved / simLink}
	return nil
}

func (s *simulated) library() string { return "" }
func (s *simulated) close() error    { return nil }

// kernel returns an execution of a candidate's products, of the collective, or of both; see [backend].load.
func (s *simulated) kernel(candidate, buffers int) power.SimKernel {
	switch {
	case buffers < 0:
		return s.products[candidate]
	case candidate < 0:
		return s.exchange
	}
	idle := power.DefaultSim().Idle
	p, e := s.products[candidate], s.exchange
	seconds := p.Seconds + e.Seconds - simShared*min(p.Seconds, e.Seconds)
	return power.SimKernel{Seconds: seconds, Watts: idle + ((p.Watts-idle)*p.Seconds+(e.Watts-idle)*e.Seconds)/seconds}
}

func (s *simulated) load(name string, candidate, buffers int) power.Load {
	k := s.kernel(candidate, buffers)
	l := &simLoad{name: name, joint: s.joint}
	for _, sim := range s.sims {
		l.own = append(l.own, sim.Load(name, k.Watts, k.Seconds))
	}
	return l
}

func (s *simulated) sequence(context.Context) (profile.Launcher, error) {
	kernels := make([]power.SimKernel, 3)
	kernels[cuda.GroupProducts], kernels[cuda.GroupCollective], kernels[cuda.GroupBoth] = s.kernel(0, -1), s.kernel(-1, 0), s.kernel(0, 0)
	l := &simSequence{joint: s.joint}
	for _, sim := range s.sims {
		l.own = append(l.own, sim.NewSequence(kernels))
	}
	return l, nil
}

// simSequence is a launch sequence of all simulated cards.
type simSequence struct {
	own   []*power.SimSequence
	joint *Joint
}

func (l *simSequence) Start(segments []cuda.Segment) error {
	var list []power.SimSegment
	for _, s := range segments {
		list = append(list, power.SimSegment{Kernel: s.Product, Executions: s.Executions})
	}
	l.joint.sync()
	for _, o := range l.own {
		if err := o.Start(list); err != nil {
			return err
		}
	}
	return nil
}

func (l *simSequence) Wait(ctx context.Context) error {
	for _, o := range l.own {
		if err := o.Wait(ctx); err != nil {
			return err
		}
	}
	l.joint.sync()
	return nil
}

func (l *simSequence) Stamps(card int) (stamps []cuda.Stamp, err error) {
	found, err := l.own[card].Stamps()
	for _, s := range found {
		stamps = append(stamps, cuda.Stamp(s))
	}
	return stamps, err
}

func (l *simSequence) Close() error { return nil }

// simLoad is a [power.Load] that runs on all simulated cards.
type simLoad struct {
	name  string
	own   []*power.SimLoad
	joint *Joint
}

func (l *simLoad) Name() string { return l.name }

func (l *simLoad) Start(n int) error {
	l.joint.sync()
	for _, o := range l.own {
		if err := o.Start(n); err != nil {
			return err
		}
	}
	return nil
}

func (l *simLoad) Wait(ctx context.Context) error {
	for _, o := range l.own {
		if err := o.Wait(ctx); err != nil {
			return err
		}
	}
	l.joint.sync()
	return nil
}

// Elapsed returns the longest of the cards' times.
func (l *simLoad) Elapsed() (longest time.Duration, err error) {
	for _, o := range l.own {
		own, err := o.Elapsed()
		if err != nil {
			return 0, err
		}
		longest = max(longest, own)
	}
	return longest, nil
}
