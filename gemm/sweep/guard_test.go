package sweep

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// flaky is a governor that fails now and then.
type flaky struct {
	limit, locked float64
	fails         func() bool
	changes       int
}

var errFlaky = errors.New("not now")

func (f *flaky) err() error {
	if f.fails != nil && f.fails() {
		return errFlaky
	}
	return nil
}

func (f *flaky) PowerLimit() (float64, error) { return f.limit, f.err() }
func (f *flaky) PowerLimits() (low, high, preset float64, err error) {
	return 200, 700, 700, f.err()
}

func (f *flaky) SetPowerLimit(watts float64) error {
	// A call may fail before or after it did its work.
	before, after := f.err(), f.err()
	if before == nil {
		f.limit = watts
		f.changes++
	}
	return errors.Join(before, after)
}

func (f *flaky) LockClock(mhz float64) error {
	if err := f.err(); err != nil {
		return err
	}
	f.locked = mhz
	return nil
}

func (f *flaky) UnlockClock() error {
	if err := f.err(); err != nil {
		return err
	}
	f.locked = 0
	return nil
}

// dog is a watchdog that does its work in this process, on a sound governor.
type dog struct {
	card     *flaky
	original Original
	gone     bool
	done     int
	restored int
}

func (d *dog) Alive() error {
	if d.gone {
		return errors.New("gone")
	}
	return nil
}
func (d *dog) Done() error { d.done++; return nil }
func (d *dog) Restore() error {
	d.restored++
	if d.gone {
		return errors.New("gone")
	}
	d.card.fails = nil
	return d.original.Restore(d.card)
}

// TestGuardAlwaysRestores: after any failure at any time, the card has its original settings, or the error is a *RestoreError.
func TestGuardAlwaysRestores(t *testing.T) {
	restored, lost := 0, 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		first := float64(200 + rng.IntN(51)*10)
		card := &flaky{limit: first}
		rate := rng.Float64()
		if rng.IntN(4) == 0 {
			rate = 0
		}
		fails := func() bool { return rng.Float64() < rate }
		if early := rng.IntN(4) == 0; early {
			card.fails = fails
		}
		d := &dog{card: card, gone: rng.IntN(3) == 0}
		watch := func(o Original) (Watchdog, error) { d.original = o; return d, nil }
		if rng.IntN(4) == 0 {
			watch = nil
		}
		g, err := NewGuard(card, true, watch)
		if err != nil {
			if card.limit != first {
				t.Fatalf("seed %d: nothing was to change: %v", seed, card.limit)
			}
			continue
		}
		card.fails = fails
		panicked := false
		func() {
			defer func() { panicked = recover() != nil }()
			err = g.Run(func() error {
				for range rng.IntN(6) {
					if err := g.Apply(Setting{Cap: float64(200 + rng.IntN(51)*10), Clock: float64(rng.IntN(2)) * 1200}); err != nil {
						return err
					}
				}
				switch rng.IntN(3) {
				case 0:
					panic("in the middle")
				case 1:
					return errors.New("in the middle")
				}
				return nil
			})
		}()
		back := card.limit == first && card.locked == 0
		var failed *RestoreError
		switch {
		case back:
			restored++
		case panicked: // the panic hides the error, and stands for it
			lost++
		case !errors.As(err, &failed) || failed.Original.Cap != first:
			t.Fatalf("seed %d: the card is at %v W, %v MHz, and the error is %v", seed, card.limit, card.locked, err)
		default:
			lost++
		}
		if !back && watch != nil && !d.gone {
			t.Fatalf("seed %d: a sound watchdog did not put it back", seed)
		}
	}
	if restored < 1000 || lost < 10 {
		t.Errorf("%d restored, %d lost: the test shows little", restored, lost)
	}
}

func TestGuardTwice(t *testing.T) {
	card := &flaky{limit: 650}
	d := &dog{card: card}
	g, err := NewGuard(card, false, func(o Original) (Watchdog, error) { d.original = o; return d, nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Apply(Setting{Cap: 300}); err != nil || card.limit != 300 {
		t.Fatal(err, card.limit)
	}
	if err := g.Apply(Setting{}); err != nil || card.limit != 650 {
		t.Fatal("what is not named is not as it was found:", err, card.limit)
	}
	if err := g.Apply(Setting{Clock: 900}); err == nil {
		t.Error("a clock was locked that nobody would unlock")
	}
	if err := errors.Join(g.Close(), g.Close()); err != nil || card.limit != 650 || d.done != 1 || d.restored != 0 {
		t.Error(err, card.limit, d)
	}
	changes := card.changes
	if g.Close(); card.changes != changes {
		t.Error("closed once more, it changed something")
	}
}

// TestGuardWithoutChange: a guard that changed nothing restores nothing.
func TestGuardWithoutChange(t *testing.T) {
	card := &flaky{limit: 500}
	g, err := NewGuard(card, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil || card.changes != 1 { // that one found out about the permission
		t.Error(err, card.changes)
	}
}

func TestGuardRefused(t *testing.T) {
	sim := power.DefaultSim()
	sim.Unprivileged = true
	governor, err := power.Govern(power.NewSim(sim))
	if err == nil {
		_, err = NewGuard(governor, false, func(Original) (Watchdog, error) {
			t.Error("a watchdog for nothing")
			return nil, nil
		})
	}
	if !errors.Is(err, power.ErrNotPermitted) {
		t.Error(err)
	}
	card := &flaky{limit: 700}
	if _, err := NewGuard(card, false, func(Original) (Watchdog, error) { return nil, fmt.Errorf("no such program") }); err == nil || card.limit != 700 {
		t.Error("changed without a watchdog:", err)
	}
}

// TestOrder: every setting once, the reference at the beginning, in the middle and at the end.
func TestOrder(t *testing.T) {
	all := Caps(200, 700, 8)
	if len(all) != 8 || all[0].Cap != 200 || all[7].Cap != 700 || all[3].Cap != 410 {
		t.Error(all)
	}
	reference := Setting{Cap: 700}
	order := Order(reference, all, 1)
	if len(order) != 10 || order[0] != reference || order[9] != reference {
		t.Fatal(order)
	}
	seen := map[Setting]int{}
	for _, s := range order {
		seen[s]++
	}
	if len(seen) != 8 || seen[reference] != 3 {
		t.Error(seen)
	}
	if other := Order(reference, all, 2); fmt.Sprint(other) == fmt.Sprint(order) {
		t.Error("the order does not depend on the seed")
	}
	if one := Order(reference, []Setting{reference}, 1); len(one) != 3 {
		t.Error(one)
	}
}

// unlockable cards know nothing of locked clocks.
type unlockable struct{ *flaky }

func (unlockable) LockClock(float64) error { return power.ErrAbsent }
func (unlockable) UnlockClock() error      { return power.ErrAbsent }

// TestGuardWithoutClocks: a card whose clock cannot be locked is restored after the attempt.
func TestGuardWithoutClocks(t *testing.T) {
	card := &flaky{limit: 650}
	d := &dog{card: card}
	g, err := NewGuard(unlockable{card}, true, func(o Original) (Watchdog, error) { d.original = o; return d, nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Apply(Setting{Cap: 300}); !errors.Is(err, power.ErrAbsent) {
		t.Error(err)
	}
	if err := g.Close(); err != nil || card.limit != 650 || d.done != 1 || d.restored != 0 {
		t.Error(err, card.limit, d)
	}
}

// stubborn is a simulated card that accepts every power limit without an error but sets none below a floor.
type stubborn struct {
	*power.Sim
	floor float64
}

func (s *stubborn) SetPowerLimit(watts float64) error {
	return s.Sim.SetPowerLimit(max(watts, s.floor))
}

// TestGuardReadsBack: a limit that the card did not apply is an error, both when it is set and when it is restored.
func TestGuardReadsBack(t *testing.T) {
	card := &stubborn{power.NewSim(quiet()), 450}
	g, err := NewGuard(card, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Apply(Setting{Cap: 500}); err != nil {
		t.Error(err)
	}
	if err := g.Apply(Setting{Cap: 400}); err == nil || !strings.Contains(err.Error(), "set to 400 W, but the card reports 450") {
		t.Errorf("a limit of 400 W that is 450 W: %v", err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}

	card = &stubborn{power.NewSim(quiet()), 0}
	if err := card.SetPowerLimit(600); err != nil {
		t.Fatal(err)
	}
	if g, err = NewGuard(card, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := g.Apply(Setting{Cap: 650}); err != nil {
		t.Fatal(err)
	}
	card.floor = 650
	var failed *RestoreError
	if err := g.Close(); !errors.As(err, &failed) || failed.Original.Cap != 600 {
		t.Errorf("a limit that was not restored: %v", err)
	}
}
