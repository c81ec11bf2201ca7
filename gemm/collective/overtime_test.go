package collective

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/cost/component"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/profile"
)

// TestOverTime profiles on two simulated cards, whose power and times are known, and splits by the components of another card.
func TestOverTime(t *testing.T) {
	sim := power.DefaultSim()
	h, err := Simulated(sim, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	model, err := component.Find("NVIDIA H200")
	if err != nil {
		t.Fatal(err)
	}
	const bytes = 32 << 20
	o := OverTimeOptions{
		Profile:  profile.Options{Length: 100 * time.Millisecond, Idle: 300 * time.Millisecond, Runs: 8, Resamples: 4, Time: 40 * time.Second},
		Splitter: &measure.Splitter{Model: model, From: "a test"},
	}
	c := candidateOf("products", 0x01, 2048)
	r, err := h.OverTime(t.Context(), cuda.AllReduce, bytes, c, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Cards) != 2 || len(r.Parts) != 6 || !r.Simulated {
		t.Fatalf("%d cards, %d parts", len(r.Cards), len(r.Parts))
	}
	if math.Abs(r.Bandwidth.Bus/simLink-1) > 0.02 {
		t.Errorf("%+v", r.Bandwidth)
	}
	s := h.backend.(*simulated)
	for i, one := range r.Parts {
		work := i % 3
		want := []power.SimKernel{s.kernel(0, -1), s.kernel(-1, 0), s.kernel(0, 0)}[work]
		if one.Card != i/3 || one.Work != []string{"products", "allreduce", "both"}[work] {
			t.Errorf("part %d is of card %d, %s", i, one.Card, one.Work)
		}
		if math.Abs(one.Seconds/want.Seconds-1) > 0.02 || math.Abs(one.Watts/want.Watts-1) > 0.1 || one.Low > one.Watts || one.High < one.Watts {
			t.Errorf("card %d, %s: %.3g s at %.0f W (%.0f … %.0f), want %.3g s at %.0f W", one.Card, one.Work, one.Seconds, one.Watts, one.Low, one.High, want.Seconds, want.Watts)
		}
		if math.Abs(one.Idle/sim.Idle-1) > 0.4 {
			t.Errorf("card %d, %s: idle %.0f W", one.Card, one.Work, one.Idle)
		}
		if sum := one.Idle + *one.Multipliers + *one.OnChip + *one.HBM + one.Rest; math.Abs(sum-one.Watts) > 1e-6 {
			t.Errorf("card %d, %s: parts add up to %.1f of %.1f W", one.Card, one.Work, sum, one.Watts)
		}
		if has := *one.Multipliers > 0; has != (work != cuda.GroupCollective) {
			t.Errorf("%s: %.1f W of multipliers", one.Work, *one.Multipliers)
		}
		if has := *one.HBM > 1; has != (work != cuda.GroupProducts) {
			t.Errorf("%s: %.1f W of memory", one.Work, *one.HBM)
		}
	}
	// Beside the collective, the same products take longer, so their multipliers' power is smaller.
	if *r.Parts[cuda.GroupBoth].Multipliers >= *r.Parts[cuda.GroupProducts].Multipliers {
		t.Errorf("multipliers %.1f W alone, %.1f W beside", *r.Parts[0].Multipliers, *r.Parts[2].Multipliers)
	}
	a, b := r.Cards[0], r.Cards[1]
	for i := range a.Profiles {
		if p, q := a.Profiles[i], b.Profiles[i]; p.Golden < 3 || q.Golden < 3 || p.Segments[0].Executions != q.Segments[0].Executions || len(p.Segments) != 1 {
			t.Errorf("profile %d: %+v and %+v", i, p.Segments, q.Segments)
		}
	}

	// Without a model the parts that need it are absent.
	o.Splitter, o.Profile.Runs = nil, 4
	if r, err = h.OverTime(t.Context(), cuda.AllGather, bytes, c, o); err != nil {
		t.Fatal(err)
	}
	if one := r.Parts[1]; one.HBM != nil || math.Abs(one.Rest-(one.Watts-one.Idle)) > 1e-9 {
		t.Errorf("%+v", one)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := h.OverTime(ctx, cuda.AllGather, bytes, c, o); err == nil || r != nil {
		t.Error(r, err)
	}
	if _, err := h.OverTime(t.Context(), cuda.AllGather, 40, c, o); err == nil {
		t.Error("40 bytes")
	}
}

// TestTraffic: an all-reduce reads and writes every buffer, an all-gather reads a share; small buffers stay in the cache.
func TestTraffic(t *testing.T) {
	model, err := component.Find("NVIDIA H200")
	if err != nil {
		t.Fatal(err)
	}
	const large, small = 1e9, 1e6
	reduce, gather := traffic(cuda.AllReduce, large, 2, model, 1, 1980), traffic(cuda.AllGather, large, 2, model, 1, 1980)
	if reduce.Asked != 2*large || gather.Asked != 1.5*large || reduce.Memory < 0.9*reduce.Asked || reduce.Memory >= reduce.Asked {
		t.Errorf("%+v\n%+v", reduce, gather)
	}
	if k := traffic(cuda.AllReduce, small, 2, model, 1, 1980); k.Memory != 0 || k.Asked != 2*small {
		t.Errorf("%+v", k)
	}
}

// hot is a machine whose card once reports that it lowered its clock because of heat.
type hot struct {
	measure.Machine
	card *hotCard
}

func (h hot) Card() power.Card { return h.card }

type hotCard struct {
	power.Card
	said bool
}

func (c *hotCard) Throttle() (power.Throttle, error) {
	if !c.said {
		c.said = true
		return power.HardwareThermal, nil
	}
	return c.Card.Throttle()
}

// TestOverTimeDisturbed: the warning about a repeated run is in the result of the card that disturbed it.
func TestOverTimeDisturbed(t *testing.T) {
	h, err := Simulated(power.DefaultSim(), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	h.Machines[1] = hot{h.Machines[1], &hotCard{Card: h.Machines[1].Card()}}
	o := OverTimeOptions{Profile: profile.Options{Length: 100 * time.Millisecond, Idle: 300 * time.Millisecond, Runs: 4, Resamples: 4, Time: 40 * time.Second}}
	r, err := h.OverTime(t.Context(), cuda.AllReduce, 32<<20, candidateOf("products", 0x01, 2048), o)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range r.Cards {
		noted := slices.ContainsFunc(c.Warnings, func(w string) bool { return strings.HasPrefix(w, "a run was disturbed") })
		if noted != (i == 1) {
			t.Errorf("card %d: warnings %q", i, c.Warnings)
		}
	}
}
