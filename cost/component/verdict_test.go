package component

import (
	"errors"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// TestVerdict: kernels that the fit never saw decide whether a model may advise.
func TestVerdict(t *testing.T) {
	m := fitted(t, usualCard, true, nil)
	if err := m.Verdict(); err != nil {
		t.Errorf("judged by its own kernels: %v", err)
	}
	k, err := Gemm{Type: arith.BF16, M: 3000, N: 5000, K: 7000, Bits: 1, Moved: 1}.Kernel("held out", card)
	if err != nil {
		t.Fatal(err)
	}
	k.Clock, k.Seconds = 1800, k.Ops/6e14
	watts, _ := usualCard.watts(&k, m.FullClock)
	for off, advises := range map[float64]bool{0.97: true, 1.03: true, 0.9: false, 1.1: false} {
		judged := *m
		judged.Readings = append(m.Readings[:len(m.Readings):len(m.Readings)], Reading{Kernel: k, HeldOut: true, Watts: watts * off})
		if err := judged.Fit(); err != nil {
			t.Fatal(err)
		}
		a, err := judged.Advise("prefill", []Kernel{k})
		if unfit := errors.Is(err, ErrUnfit); unfit == advises || (a != nil) != advises || errors.Is(judged.Verdict(), ErrUnfit) == advises {
			t.Errorf("%.0f %% off: %v, %v", 100*(off-1), a, err)
		}
	}
}

// TestSplits: it takes more to withhold splits than to withhold advice, and the fit's own kernels, left out in
// turn, judge it where no others do.
func TestSplits(t *testing.T) {
	for off, shown := range map[float64]bool{0: true, 0.08: true, 0.15: true, 0.2: false} {
		for _, q := range []Quality{{HeldOut: 1, HeldOutWorst: off}, {HeldOut: 1, HeldOutWorst: off, LeftOut: 1, Worst: 1}, {LeftOut: 1, Worst: off}} {
			m := Model{Quality: &q}
			if s, v := m.Splits(), m.Verdict(); (s == nil) != shown || (v == nil) != (off <= 0.05) {
				t.Errorf("%+v: %v, %v", q, s, v)
			}
		}
	}
	for _, q := range []*Quality{nil, {}} {
		if m := (Model{Quality: q}); m.Splits() == nil || m.Verdict() == nil {
			t.Error("what nothing judges is good enough")
		}
	}
	if a, err := new(Model).Advise("prefill", nil); err == nil {
		t.Errorf("without a fit: %+v", a)
	}
	for simulated, advised := range map[bool]bool{false: true, true: false} {
		err := (&Model{Simulated: simulated, Quality: new(Quality)}).Splits()
		if strings.Contains(err.Error(), "warm card without other processes") != advised {
			t.Errorf("simulated %v: %v", simulated, err)
		}
	}
}
