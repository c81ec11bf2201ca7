package cuda

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// Ten minutes of sequences and idling: stamps and readings share one clock, to a microsecond. A single
// base would be wrong by 30.
func TestTimelineStaysTrue(t *testing.T) {
	c := newCard(t)
	c.product = 1603217 * time.Nanosecond
	d := openFake(t, c)
	tr := sequence(t, d, small[0])
	rng := rand.New(rand.NewPCG(1, 2))
	now := func() time.Duration { return c.now }
	check := func(what string, at, want time.Duration) {
		if off := (at - want).Abs(); off > time.Microsecond {
			t.Fatalf("%s at %v is wrong by %v", what, want, off)
		}
	}
	for c.now < 10*time.Minute {
		for range 48 {
			c.now += time.Duration(rng.Int64N(int64(500 * time.Millisecond)))
			c.query = time.Duration(1 + rng.IntN(20_000))
			before := c.now
			r, err := d.ReadClock(now)
			if err != nil {
				t.Fatal(err)
			}
			if r.Before != before || r.After != before+c.query {
				t.Errorf("the host's clock: %+v, it went from %v by %v", r, before, c.query)
			}
			check("a reading", r.Card, before)
		}
		c.query = 20 * time.Millisecond
		begun := c.now
		for _, s := range stamps(t, tr, Segment{0, 600}) {
			check("a stamp", s.At, begun+time.Duration(s.Done)*c.product)
		}
	}
}

func TestReadClockFails(t *testing.T) {
	c := newCard(t)
	d := openFake(t, c)
	now := func() time.Duration { return c.now }
	for _, call := range []string{"cuEventRecord", "cuEventQuery", "cuEventElapsedTime"} {
		c.fail[call] = 0
		if _, err := d.ReadClock(now); err == nil || !strings.Contains(err.Error(), "reading the clock: ") || !strings.Contains(err.Error(), "PLANTED") {
			t.Errorf("%s: %v", call, err)
		}
		delete(c.fail, call)
		if _, err := d.ReadClock(now); err != nil {
			t.Errorf("after %s: %v", call, err)
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := d.ReadClock(now); !errors.Is(err, errClosed) {
		t.Error(err)
	}
}
