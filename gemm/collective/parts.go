package collective

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/component"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/profile"
)

// Parts is a workload's measured power on one card, over the second half of its runs, split by the card's component model. Powers
// are in watts.
type Parts struct {
	Card    int     `json:"card"` // index of the card
	Work    string  `json:"work"`
	Seconds float64 `json:"seconds"` // duration of an execution
	Watts   float64 `json:"watts"`
	Low     float64 `json:"low"` // ends of the 95 % interval
	High    float64 `json:"high"`
	// Idle is the card's power before the workload.
	Idle float64 `json:"idle_watts"`
	// Multipliers, OnChip and HBM are predicted; absent without a model of the card. For a collective they are lower bounds:
	// every card reads the sent data once and writes the result once.
	Multipliers *float64 `json:"multipliers_watts,omitempty"`
	OnChip      *float64 `json:"on_chip_watts,omitempty"`
	HBM         *float64 `json:"hbm_watts,omitempty"`
	// Rest is the remaining power: the links between the cards, awake multiprocessors, and the model's error. No sensor separates
	// these three.
	Rest float64 `json:"rest_watts"`
	// From is the model's origin.
	From string `json:"from,omitempty"`
}

// split computes the parts of all workloads.
func (r *OverTime) split(ctx context.Context, c measure.Candidate, s *measure.Splitter) error {
	for i, card := range r.Cards {
		for work := range card.Profiles {
			p := &card.Profiles[work]
			if p.Trace == nil || len(p.Segments) == 0 {
				continue
			}
			one := Parts{Card: i, Work: card.Products[work].Name, Seconds: executionSeconds(card, work)}
			var clock *float64
			one.Watts, one.Low, one.High, clock = p.SecondHalf()
			one.Idle, _, _, _ = p.BeforeWork()
			if s != nil && clock != nil {
				if err := r.predict(ctx, &one, work, c, s, card, *clock); err != nil {
					return fmt.Errorf("power by component: %w", err)
				}
			}
			one.Rest = one.Watts - one.Idle
			for _, v := range []*float64{one.Multipliers, one.OnChip, one.HBM} {
				if v != nil {
					one.Rest -= *v
				}
			}
			r.Parts = append(r.Parts, one)
		}
	}
	return nil
}

// predict sets a model's predictions for a workload at its measured time and clock.
func (r *OverTime) predict(ctx context.Context, one *Parts, work int, c measure.Candidate, s *measure.Splitter, card *profile.Result, clock float64) error {
	var multipliers, chip, hbm float64
	add := func(split component.Split) {
		multipliers += split.Of(component.Multipliers).Watts
		chip += split.Of(component.OnChip).Watts
		hbm += split.Of(component.HBM).Watts
	}
	if work != cuda.GroupCollective {
		found, err := s.Split(ctx, measure.Dissected{Name: one.Work, Before: c.Products, Platform: card.Platform, Seconds: one.Seconds, Clock: clock})
		if err != nil {
			return err
		}
		add(found.Before)
	}
	if work != cuda.GroupProducts {
		split, err := s.SplitSequence([]component.Kernel{traffic(r.Operation, r.Bytes, len(r.Cards), s.Model, one.Seconds, clock)})
		if err != nil {
			return err
		}
		add(split)
	}
	one.Multipliers, one.OnChip, one.HBM, one.From = &multipliers, &chip, &hbm, s.From
	return nil
}

// traffic returns the least traffic of a card in a collective. It does not set the number of multiprocessors, which is unknown.
// Buffers that fit into the cache cause no memory traffic.
func traffic(op cuda.Collective, bytes int64, cards int, m *component.Model, seconds, clock float64) component.Kernel {
	sent, received := float64(bytes), float64(bytes)
	if op == cuda.AllGather {
		sent /= float64(cards)
	}
	all := sent + received
	l2 := m.L2
	if l2 == 0 {
		l2 = m.Facts.Tiles.L2
	}
	lost := max(0, 1-l2/m.Facts.Tiles.CacheCopies/all)
	return component.Kernel{
		Name: string(op), Asked: all, Memory: all * lost, Moved: m.Facts.RandomMoved[arith.BF16], Seconds: seconds, Clock: clock,
	}
}
