package collective

import (
	"context"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/profile"
)

// OverTime is the power over time of products, of a collective, and of both at once, on every card of a host.
type OverTime struct {
	Operation cuda.Collective `json:"collective"`
	// Bytes is the collective's size by the definition of nccl-tests; see [Bandwidth].
	Bytes     int64  `json:"bytes"`
	Library   string `json:"library,omitempty"` // NCCL's version
	Simulated bool   `json:"simulated,omitempty"`
	// Cards has the profile of each card, with the workloads in the order of the constants from cuda.GroupProducts on.
	Cards []*profile.Result `json:"cards"`
	// Parts is the power of every workload on every card by component, in the order of Cards and of their workloads.
	Parts []Parts `json:"parts,omitempty"`
	// Bandwidth is the bandwidth of the collective alone, on the first card.
	Bandwidth *Bandwidth `json:"bandwidth,omitempty"`
}

// OverTimeOptions are the options of [Host.OverTime].
type OverTimeOptions struct {
	Profile profile.Options
	// Splitter splits power by component. Default: only idle power and the rest.
	Splitter *measure.Splitter
}

// OverTime profiles a candidate's products, a collective of the given number of bytes, and both at once, each from idle cards.
// All cards work at the same time, and every card's sensors are read in the same runs. Checks and data are as in [Host.Compare].
// After an error the result has the completed measurements; it is nil if there are none.
func (h *Host) OverTime(ctx context.Context, op cuda.Collective, bytes int64, c measure.Candidate, o OverTimeOptions) (*OverTime, error) {
	if err := h.prepare(ctx, []measure.Candidate{c}, op, bytes); err != nil {
		return nil, err
	}
	launcher, err := h.backend.sequence(ctx)
	if err != nil {
		return nil, err
	}
	works := make([]profile.Product, 3)
	works[cuda.GroupProducts].Name, works[cuda.GroupCollective].Name, works[cuda.GroupBoth].Name = c.Name, string(op), "both"
	if len(c.Products) == 1 {
		works[cuda.GroupProducts].Problem = &c.Products[0].Problem
	}
	r := &OverTime{Operation: op, Bytes: bytes, Library: h.backend.library(), Simulated: h.Machines[0].Platform() == nil}
	r.Cards, err = profile.MeasureGroup(ctx, profile.Group{
		Machines: h.Machines, Clock: h.joint, Works: works, Launcher: launcher, Load: h.backend.load(c.Name, 0, -1),
	}, o.Profile)
	if r.Cards == nil {
		return nil, err
	}
	if each := executionSeconds(r.Cards[0], cuda.GroupCollective); each > 0 {
		b := BandwidthOf(op, bytes, len(h.Machines), each)
		r.Bandwidth = &b
	}
	if err == nil {
		err = r.split(ctx, c, o.Splitter)
	}
	return r, err
}

// executionSeconds returns the mean time of an execution of a workload; 0 if no run was golden.
func executionSeconds(r *profile.Result, work int) float64 {
	if work >= len(r.Profiles) || len(r.Profiles[work].Segments) == 0 {
		return 0
	}
	s := r.Profiles[work].Segments[0]
	return s.End.Seconds() / float64(s.Executions)
}

// Steady reports whether every workload reached steady power on every card and kept it.
func (r *OverTime) Steady() bool {
	return !slices.ContainsFunc(r.Cards, func(c *profile.Result) bool { return !c.Steady() })
}
