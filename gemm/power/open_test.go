package power

import (
	"testing"
	"time"
)

// TestGPUCard reads the idle real card, if there is one.
func TestGPUCard(t *testing.T) {
	card, err := Open("0")
	if err != nil {
		t.Skip(err)
	}
	defer card.Close()
	t.Logf("%s", marshal(t, card.Info()))
	m, err := NewMeter(card, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.record(t.Context(), 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("idle: %d steps of the counter, %d of the instant sensor, %d of the average one", len(got.energy), len(got.instant), len(got.average))
	if len(got.energy) < 3 {
		t.Error(ErrCounterStill)
	}
	for _, sensor := range []Sensor{Instant, Average} {
		for _, scope := range []Scope{GPU, Module, Memory} {
			v, err := card.Power(sensor, scope)
			t.Logf("sensor %d, scope %d: %v W, %v", sensor, scope, v, err)
		}
	}
	begin := time.Now()
	for range 100 {
		if _, err := card.Energy(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("one reading of the counter takes %v", time.Since(begin)/100)
}
