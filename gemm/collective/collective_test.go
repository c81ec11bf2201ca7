package collective

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestBandwidth: the factors of nccl-tests.
func TestBandwidth(t *testing.T) {
	for _, c := range []struct {
		op    cuda.Collective
		cards int
		bus   float64
	}{{cuda.AllReduce, 2, 100}, {cuda.AllReduce, 8, 175}, {cuda.AllGather, 2, 50}, {cuda.AllGather, 8, 87.5}} {
		if b := BandwidthOf(c.op, 200, c.cards, 2); b.Algorithm != 100 || b.Bus != c.bus {
			t.Errorf("%s between %d cards: %+v, want %v", c.op, c.cards, b, c.bus)
		}
	}
}

// TestJointEnergy: the sum of counters that step at different times is the energy of both cards, between any two of its steps.
// It is less exact where queries are slow.
func TestJointEnergy(t *testing.T) {
	t.Run("quick queries", func(t *testing.T) { jointEnergy(t, 0.004, power.DefaultSim().Query) })
	t.Run("slow queries", func(t *testing.T) { jointEnergy(t, 0.03, 2600*time.Microsecond) }) // as two H100s on a virtual machine
}

func jointEnergy(t *testing.T, tolerance float64, query time.Duration) {
	o := power.DefaultSim()
	o.Query = query
	o.PowerNoise, o.TimeNoise, o.DipRate = 0, 0, 0
	var sims []*power.Sim
	var cards []power.Card
	var clocks []power.Clock
	for i := range 2 {
		o.Seed = uint64(i + 1)
		s := power.NewSim(o)
		sims, cards, clocks = append(sims, s), append(cards, s), append(clocks, s)
	}
	j := NewJoint(cards, clocks)
	watts := []float64{300, 500}
	for i, s := range sims {
		if err := s.Load("work", watts[i], 0.001).Start(60000); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Sleep(t.Context(), 30*time.Second); err != nil { // the die is warm then
		t.Fatal(err)
	}
	edge := func() (uint64, time.Duration) {
		first, err := j.Energy()
		for e, begin := first, j.Now(); ; {
			if j.Now()-begin > 5*time.Second {
				t.Fatal("the sum did not step in 5 s")
			}
			if err != nil {
				t.Fatal(err)
			}
			if e != first {
				return e, j.Now()
			}
			e, err = j.Energy()
		}
	}
	edge()
	for _, length := range []time.Duration{300 * time.Millisecond, 470 * time.Millisecond, time.Second, 1230 * time.Millisecond} {
		e0, t0 := edge()
		if err := j.Sleep(t.Context(), length); err != nil {
			t.Fatal(err)
		}
		e1, t1 := edge()
		p0, _ := cards[0].Power(power.Instant, power.GPU)
		p1, _ := cards[1].Power(power.Instant, power.GPU)
		got := float64(e1-e0) / 1000 / (t1 - t0).Seconds()
		if math.Abs(got/(p0+p1)-1) > tolerance {
			t.Errorf("over %v: %.1f W, the cards draw %.1f", t1-t0, got, p0+p1)
		}
	}
	if info := j.Info(); info.Name != "2 × simulated card" || *info.PowerLimit != 1400 {
		t.Errorf("%+v", info)
	}
}

// TestStepTimes: a step is dated in the middle of the two polls around it, if they are close. Power is between two dated steps.
func TestStepTimes(t *testing.T) {
	const ms = time.Millisecond
	var s step
	for _, c := range []struct {
		value uint64
		now   time.Duration
		at    time.Duration
		fresh int
		watts float64
	}{
		{1000, 100 * ms, 0, 0, 0},                 // the first poll dates no step
		{1000, 110 * ms, 0, 0, 0},                 // no step
		{21000, 120 * ms, 115 * ms, 1, 0},         // the first dated step
		{41000, 230 * ms, 115 * ms, 0, 0},         // a late poll
		{41000, 240 * ms, 115 * ms, 0, 0},         //
		{61000, 260 * ms, 250 * ms, 1, 0},         //
		{61000, 340 * ms, 250 * ms, 1, 0},         //
		{91000, 360 * ms, 350 * ms, 2, 300},       // 30 J in 100 ms
		{111000, 365 * ms, 362500 * 1e3, 3, 1600}, // 20 J in 12.5 ms
	} {
		s.poll(c.value, c.now)
		if s.at != c.at || s.fresh != c.fresh || math.Abs(s.watts-c.watts) > 1e-9 {
			t.Errorf("at %v: step at %v, %d fresh, %v W; want %+v", c.now, s.at, s.fresh, s.watts, c)
		}
	}
}

// TestSlowQueries: cards whose queries take milliseconds are measured.
func TestSlowQueries(t *testing.T) {
	o := power.DefaultSim()
	o.Query, o.Stall, o.StallEvery = 2600*time.Microsecond, 5*time.Millisecond, 7
	h, err := Simulated(o, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	r, err := h.Compare(t.Context(), cuda.AllReduce, 1<<16, candidate("toggling", 0x3f), []measure.Candidate{candidate("still", 0)}, Options{Meter: power.Options{Time: 30 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Valid() {
		t.Errorf("%v %v %v", r.Alone.Invalid, r.Products.Invalid, r.Both.Invalid)
	}
}

func candidate(name string, fill byte) measure.Candidate { return candidateOf(name, fill, 256) }

func candidateOf(name string, fill byte, side int) measure.Candidate {
	w, x := gemm.NewMatrix(weights.BF16, side, side), gemm.NewMatrix(weights.BF16, side, side)
	for i := range w.Data {
		if i/(2*side)%2 == 1 { // every second row
			w.Data[i] = fill
		}
	}
	return measure.Candidate{Name: name, Products: []cuda.Product{{Name: name, Problem: gemm.Problem{M: side, N: side, K: side, Type: arith.BF16}, X: x, W: w}}}
}

// TestCompare measures on two simulated cards. Weights with fewer toggles save energy alone, and a smaller share together with
// the collective, whose energy does not change.
func TestCompare(t *testing.T) {
	h, err := Simulated(power.DefaultSim(), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	o := Options{Meter: power.Options{Time: 30 * time.Second}}
	r, err := h.Compare(t.Context(), cuda.AllReduce, 1<<16, candidate("toggling", 0x3f), []measure.Candidate{candidate("still", 0)}, o)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Valid() || !r.Simulated || len(r.Cards) != 2 {
		t.Errorf("%+v %+v %+v", r.Alone.Header, r.Products.Header, r.Both.Header)
	}
	alone, both := r.Products.Variants[0], r.Both.Variants[0]
	if alone.RelativeEnergy > 0.8 || both.RelativeEnergy < alone.RelativeEnergy+0.02 || both.Interval[1] > 1 {
		t.Errorf("energy %.3f alone, %.3f beside the collective", alone.RelativeEnergy, both.RelativeEnergy)
	}
	if b := r.Bandwidth; math.Abs(b.Bus/simLink-1) > 0.01 || math.Abs(b.Algorithm/b.Bus-1) > 1e-9 {
		t.Errorf("%+v", b)
	}
	if math.Abs(*r.Hidden-simShared) > 0.05 {
		t.Errorf("hidden %.3f", *r.Hidden)
	}
	if w := r.Alone.Baseline.Watts; math.Abs(w/2/simExchange-1) > 0.15 {
		t.Errorf("%.0f W of two cards", w)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := h.Compare(ctx, cuda.AllGather, 1<<16, candidate("a", 1), nil, o); err == nil || r != nil && r.Valid() {
		t.Error(r, err)
	}
	if _, err := h.Compare(t.Context(), cuda.AllGather, 40, candidate("a", 1), nil, o); err == nil || !strings.Contains(err.Error(), "multiple of 32 bytes") {
		t.Error(err)
	}
	if _, err := Simulated(power.DefaultSim(), 1); err == nil {
		t.Error("a collective of one card")
	}
}
