package profile

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// TestCounterStandsStill: a card whose energy counter does not move is profiled by its other sensors.
func TestCounterStandsStill(t *testing.T) {
	o := plain()
	o.Faults = []power.SimFault{{Kind: power.FaultCounterStops}}
	r := measured(t, measure.Simulated(o), fewer, product("still", false))
	near(t, "power at the end", r.Profiles[0].Milestones[len(r.Profiles[0].Milestones)-1].Watts, planted, 0.03)
	all := strings.Join(r.Warnings, "\n")
	if !strings.Contains(all, "the self-test of the sensors was skipped") || !strings.Contains(all, "the energy counter does not change: the trace is computed without this sensor, so its resolution is coarser") {
		t.Errorf("warnings %q", r.Warnings)
	}
}

// reset is a card whose energy counter once shows 0.
type reset struct {
	power.Card
	left *int // queries until then
}

func (c reset) Energy() (uint64, error) {
	if *c.left--; *c.left == 0 {
		return 0, nil
	}
	return c.Card.Energy()
}

// TestSelfTestAgain: a disturbed self-test is repeated.
func TestSelfTestAgain(t *testing.T) {
	m, left := measure.Simulated(plain()), 100
	r := measured(t, other{Machine: m, card: reset{m.Card(), &left}}, quicker, product("still", false))
	if r.SelfTest == nil || len(r.Warnings) != 1 || !strings.HasPrefix(r.Warnings[0], "the first self-test of the sensors was disturbed (") {
		t.Errorf("self-test %v, warnings %q", r.SelfTest, r.Warnings)
	}
}

// hot is a card that lowers its clock for heat at the first queries.
type hot struct {
	power.Card
	left *int
}

func (h hot) Throttle() (power.Throttle, error) {
	if *h.left--; *h.left >= 0 {
		return power.HardwareThermal, nil
	}
	return h.Card.Throttle()
}

// TestWarmUpAgain: a run of the warm-up that was disturbed does not count.
func TestWarmUpAgain(t *testing.T) {
	m, left := measure.Simulated(plain()), 1
	r := measured(t, other{Machine: m, card: hot{m.Card(), &left}}, quicker, product("still", false))
	if len(r.Warnings) != 1 || !strings.HasPrefix(r.Warnings[0], "a run was disturbed (the card reduced its clock because of its temperature") {
		t.Errorf("warnings %q", r.Warnings)
	}
}

// closing is a launcher that counts calls of Close.
type closing struct {
	Launcher
	n int
}

var errClosed = errors.New("closed")

func (c *closing) Close() error { c.n++; return errClosed }

// TestGroupClosesItsLauncher: a group that cannot be measured closes its launcher, too.
func TestGroupClosesItsLauncher(t *testing.T) {
	two := make([]measure.Machine, 2)
	for name, g := range map[string]struct {
		group   Group
		options Options
	}{
		"one card":      {Group{Machines: two[:1], Works: make([]Product, 1)}, Options{}},
		"no work":       {Group{Machines: two}, Options{}},
		"wrong options": {Group{Machines: two, Works: make([]Product, 1)}, Options{Runs: 1}},
	} {
		c := &closing{}
		g.group.Launcher = c
		if _, err := MeasureGroup(context.Background(), g.group, g.options); !errors.Is(err, errClosed) || c.n != 1 {
			t.Errorf("%s: closed %d times: %v", name, c.n, err)
		}
	}
}
