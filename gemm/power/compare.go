package power

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// Compare measures energy and time per execution of the null load and the variants, relative to the baseline. It runs a
// self-test and a warm-up, and then measures until the precision is reached or the time is over.
//
// The result is nil only if the loads are invalid. If the context ends or a load fails, Compare returns the
// measurements so far together with the error.
func (m *Meter) Compare(ctx context.Context, loads Loads) (*Result, error) {
	if err := loads.validate(); err != nil {
		return nil, err
	}
	r := newResult(m.card, m.opt)
	stopped, err := m.measure(ctx, loads, r)
	if r.Stopped = stopped; err != nil {
		r.Stopped = StoppedFailed
		if parallel.Ended(err) {
			r.Stopped = StoppedCancelled
		}
	}
	r.summarise(loads, m.opt)
	r.validate()
	if spoils(err) {
		r.Invalidate("%v", err)
	}
	for _, why := range m.again {
		r.Warn("a reading was disturbed (%s), and was repeated after a wait", why)
	}
	if n := r.arrangements(); n > 0 && n < loads.Arrangements {
		r.Warn("blocks were measured in %d of %d arrangements of the memory, so effects of memory addresses do not cancel in the ratios: allow more time", n, loads.Arrangements)
	}
	return r, err
}

// measure fills in the result and returns the reason why the measurement ended.
func (m *Meter) measure(ctx context.Context, loads Loads, r *Result) (string, error) {
	var err error
	if r.SelfTest, err = m.selfTest(ctx, loads.Baseline); err != nil {
		return "", err
	}
	if m.opt.Duty != 0 {
		defer func() { _ = m.unpace(context.WithoutCancel(ctx), loads) }() // a failure may have made the loads unusable, so the error is ignored
		if err := m.pace(ctx, loads, r); err != nil {
			return "", err
		}
	}
	if r.Steady, err = m.warmUp(ctx, loads.Baseline); err != nil {
		return "", err
	}
	if err := m.measureGaps(ctx, loads.Baseline, r.Pacing); err != nil {
		return "", err
	}
	r.inspect(m.card, m.opt.Self)
	r.Window = m.length().Seconds()
	if asked, least := m.opt.Window.Round(time.Millisecond), m.length().Round(time.Millisecond); least > asked {
		r.Warn("windows last %v instead of %v, because a window needs five steps of the energy counter", least, asked)
	}
	return m.blocks(ctx, loads, r)
}

// selfTest returns the self-test of the options, or runs a new one.
func (m *Meter) selfTest(ctx context.Context, load Load) (*SelfTest, error) {
	if known := m.opt.SelfTest; known != nil {
		m.learn(*known)
		return known, nil
	}
	m.beginStage(stageSelfTest)
	var test SelfTest
	err := Undisturbed(ctx, m.clock, func(bool) (err error) {
		test, err = m.SelfTest(ctx, load)
		return err
	}, func(err error) { m.again = append(m.again, err.Error()) })
	if err != nil {
		return nil, err
	}
	return &test, nil
}

// blocks measures one block after the other. A new block starts only if the remaining time is at least the duration of
// the last block.
func (m *Meter) blocks(ctx context.Context, loads Loads, r *Result) (string, error) {
	all := loads.all()
	about := map[string]float64{}
	for _, load := range all {
		s, err := m.estimate(ctx, load)
		if err != nil {
			return "", err
		}
		about[load.Name()] = s
		if longest := m.windowOf(s); s > longest.Seconds()/50 && m.idle == 0 {
			r.Warn("one execution of %q takes %v, which is long for a window of %v and makes readings less precise: choose a longer window",
				load.Name(), seconds(s).Round(time.Millisecond), longest.Round(time.Millisecond))
		}
	}
	// The first window brings the card back to its steady state and is not used.
	m.last = Window{}
	if _, err := m.window(ctx, loads.Baseline, about[loads.Baseline.Name()]); err != nil {
		return "", err
	}
	rng := rand.New(rand.NewPCG(m.opt.Seed, 0))
	m.beginStage(stageMeasure)
	begin := m.clock.Now()
	var order []Load
	for {
		before := r.Seconds
		if order = exchanged(order, loads); len(r.Blocks)%2 == 0 {
			order = shuffled(all, rng)
		}
		err := m.arrange(ctx, loads, r)
		if err == nil {
			err = m.block(ctx, order, about, r)
		}
		r.Seconds = m.since(begin).Seconds()
		if err != nil {
			return "", err
		}
		r.inspect(m.card, m.opt.Self)
		r.summarise(loads, m.opt)
		if 2*r.fewest() >= enoughPasses && r.arrangements() >= loads.Arrangements && r.widest() <= m.opt.Precision {
			return StoppedPrecision, nil
		}
		if r.Seconds+(r.Seconds-before) > m.opt.Time.Seconds() {
			// No further block fits into the time. Fewer blocks than the usual minimum may be precise enough.
			if r.arrangements() >= loads.Arrangements && r.widest() <= m.opt.Precision {
				return StoppedPrecision, nil
			}
			return StoppedTime, nil
		}
	}
}

// shuffled returns the loads in a random order, followed by the reverse order.
func shuffled(loads []Load, rng *rand.Rand) []Load {
	order := slices.Clone(loads)
	rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	back := slices.Clone(order)
	slices.Reverse(back)
	return append(order, back...)
}

// exchanged returns an order with the baseline and the null load exchanged. Over two blocks, both loads have the same
// positions and neighbours, so the order cannot bias the null comparison.
func exchanged(order []Load, loads Loads) []Load {
	order = slices.Clone(order)
	for i, l := range order {
		switch l {
		case loads.Baseline:
			order[i] = loads.Null
		case loads.Null:
			order[i] = loads.Baseline
		}
	}
	return order
}

// arrange establishes the memory arrangement of the next block.
func (m *Meter) arrange(ctx context.Context, loads Loads, r *Result) error {
	b := Block{Windows: []Window{}}
	if loads.Arrangements > 1 {
		b.Arrangement = len(r.Blocks) % loads.Arrangements
		if err := loads.Arrange(ctx, b.Arrangement); err != nil {
			return err
		}
	}
	r.Blocks = append(r.Blocks, b)
	return nil
}

// block measures the loads in order. An interrupted block is kept and marked as incomplete.
func (m *Meter) block(ctx context.Context, order []Load, about map[string]float64, r *Result) error {
	b := &r.Blocks[len(r.Blocks)-1]
	for _, load := range order {
		w, err := m.window(ctx, load, about[load.Name()])
		if err != nil {
			return err
		}
		b.Windows = append(b.Windows, w)
		about[load.Name()] = w.each
		m.tell()
	}
	b.Complete = true
	return nil
}
