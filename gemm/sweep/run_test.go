package sweep

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
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

// candidates are one product of 8192×256×256 by random weights, and by weights whose low mantissa bits are zero.
func candidates() (before, after measure.Candidate) {
	r := rand.New(rand.NewPCG(1, 1))
	matrix := func(rows int, mask byte) gemm.Matrix {
		m := gemm.Matrix{DType: weights.BF16, Rows: rows, Cols: 256, Data: make([]byte, 2*256*rows)}
		for i := range rows * 256 {
			v := math.Float32bits(float32(r.NormFloat64()))
			m.Data[2*i], m.Data[2*i+1] = byte(v>>16)&mask, byte(v>>24)
		}
		return m
	}
	p := gemm.Problem{M: 8192, N: 256, K: 256, Type: arith.BF16}
	product := func(w gemm.Matrix) []cuda.Product {
		return []cuda.Product{{Name: "w", Problem: p, X: matrix(p.M, 0xff), W: w}}
	}
	before = measure.Candidate{Name: "original", Products: product(matrix(p.N, 0xff))}
	after = measure.Candidate{Name: "converted", Products: product(matrix(p.N, 0x80))}
	after.Products[0].X = before.Products[0].X
	return before, after
}

func quiet() power.SimOptions {
	o := power.DefaultSim()
	o.DipRate = 0
	return o
}

func open(t *testing.T, o power.SimOptions) measure.Machine {
	t.Helper()
	m, err := measure.OpenSimulated(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func planOf(t *testing.T, m measure.Machine, settings ...Setting) Plan {
	t.Helper()
	card := m.Card().Info()
	card.PowerLimit = new(limitOf(t, m))
	p, err := NewPlan(card, settings, 1)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func limitOf(t *testing.T, m measure.Machine) float64 {
	t.Helper()
	card := m.Card()
	for w, ok := card.(interface{ Unwrap() power.Card }); ok; w, ok = card.(interface{ Unwrap() power.Card }) {
		card = w.Unwrap()
	}
	v, err := card.(power.Governor).PowerLimit()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

var short = Options{Measure: measure.Options{Meter: power.Options{Time: 20 * time.Second, Precision: 0.01}}}

// TestRun measures a simulated card, where power goes with the clock to the 2.5: a lower cap saves energy and
// takes time, and the quieter weights save at any.
func TestRun(t *testing.T) {
	m := open(t, quiet())
	before, after := candidates()
	p := planOf(t, m, Setting{Cap: 400}, Setting{Cap: 550}, Setting{Clock: 1200})
	var stages []string
	o := short
	o.Progress = func(e Event) {
		if n := len(stages); n == 0 || stages[n-1] != e.Stage {
			stages = append(stages, e.Stage)
		}
		if e.Done > e.Total || e.Total != int64(o.Measure.Meter.Time) {
			t.Errorf("%+v", e)
		}
	}
	r, err := Run(t.Context(), m, p, before, after, o)
	if err != nil || !r.Valid || r.Stopped != "" || !r.Simulated {
		t.Fatalf("%v %+v", err, r)
	}
	for i, s := range stages {
		if want := fmt.Sprintf("%d of 6: %v", i+1, p.Order[i]); s != want {
			t.Errorf("stage %q, want %q", s, want)
		}
	}
	if len(stages) != 6 {
		t.Errorf("stages %q", stages)
	}
	if len(r.Points) != 4 || len(r.Visits) != 6 || !r.IsReference(r.Points[2].Setting) || r.Points[2].Visits != 3 || r.Points[3].Clock != 1200 {
		t.Fatalf("%+v", r.Points)
	}
	at := map[Setting]Point{}
	for _, q := range r.Points {
		at[q.Setting] = q
		for _, f := range []Figures{q.Original, *q.Converted} {
			if !(f.Interval[0] <= f.RelativeEnergy && f.RelativeEnergy <= f.Interval[1]) || f.Interval[1]-f.Interval[0] > 0.2 {
				t.Errorf("%v: %v in %v", q.Setting, f.RelativeEnergy, f.Interval)
			}
		}
		if q.Converted.Joules >= q.Original.Joules {
			t.Errorf("%v: the quieter weights take %v J, the others %v J", q.Setting, q.Converted.Joules, q.Original.Joules)
		}
		if q.Cap > 0 && q.Original.Watts > 1.01*q.Cap {
			t.Errorf("%v: %v W", q.Setting, q.Original.Watts)
		}
	}
	low, middle, top := at[Setting{Cap: 400}].Original, at[Setting{Cap: 550}].Original, at[Setting{Cap: r.Reference}].Original
	if !(low.Seconds > middle.Seconds && middle.Seconds > top.Seconds && middle.Joules < top.Joules) {
		t.Error(low, middle, top)
	}
	if c := at[Setting{Clock: 1200}].Original; c.Clock == nil || math.Abs(*c.Clock-1200) > 1 {
		t.Errorf("locked at 1200 MHz: %+v", c)
	}
	if top.RelativeEnergy != 1 || top.RelativeTime != 1 || top.GainMinusLoss != 0 || top.EDS[0].Value != 1 || top.EDS[0].K != 1.5 {
		t.Errorf("the reference: %+v", top)
	}
	for _, b := range r.Best {
		sign := 1.0
		if b.Metric == gainMinusLoss {
			sign = -1
		}
		if sign*b.Both.Value > sign*b.Setting.Value+1e-12 || sign*b.Both.Value > sign*b.Transform.Value+1e-12 || !r.IsReference(b.Transform.Setting) {
			t.Errorf("%+v", b)
		}
	}
	if limitOf(t, m) != 700 {
		t.Error("not put back")
	}
}

// TestRunAlone sweeps the original weights alone.
func TestRunAlone(t *testing.T) {
	m := open(t, quiet())
	before, _ := candidates()
	r, err := Run(t.Context(), m, planOf(t, m, Setting{Cap: 400}), before, measure.Candidate{}, short)
	if err != nil || !r.Valid || r.After != "" || len(r.Points) != 2 || r.Points[0].Converted != nil || r.Best[0].Both != nil || r.Best[0].Transform != nil {
		t.Errorf("%v %+v", err, r)
	}
}

// TestDrift: a sweep is valid only if the reference's energy changes by at most 2 % between visits.
func TestDrift(t *testing.T) {
	m := open(t, quiet())
	before, _ := candidates()
	p := planOf(t, m, Setting{Cap: 400})
	r, err := Run(t.Context(), m, p, before, measure.Candidate{}, short)
	if err != nil || !r.Valid {
		t.Fatal(err, r)
	}
	last := len(r.Visits) - 1
	if !r.IsReference(r.Visits[last].Setting) {
		t.Fatalf("the last visit is at %v", r.Visits[last].Setting)
	}
	for drift, valid := range map[float64]bool{0: true, 0.019: true, -0.018: true, 0.021: false, -0.022: false} {
		visits := slices.Clone(r.Visits)
		for i := range visits {
			run := *visits[i].Run
			visits[i].Run, run.Result = &run, new(*run.Result)
			if r.IsReference(visits[i].Setting) {
				run.Baseline.Joules = r.Visits[0].Run.Baseline.Joules
			}
		}
		visits[last].Run.Baseline.Joules *= 1 + drift
		drifted := newResult(p, visits, []float64{2})
		if want := max(drift, -drift/(1+drift)); drifted.Valid != valid || math.Abs(drifted.Drift-want) > 1e-9 {
			t.Errorf("a drift of %v: %v, valid %v: %q", drift, drifted.Drift, drifted.Valid, drifted.Invalid)
		}
	}
}

// failing machines fail, or worse, at a batch's start.
type failing struct {
	measure.Machine
	do func() error // nil: not yet
}

type failingBatch struct {
	measure.Batch
	f *failing
}

func (f failing) NewBatch(ctx context.Context, name string, products []cuda.Product, o cuda.Options) (measure.Batch, error) {
	b, err := f.Machine.NewBatch(ctx, name, products, o)
	return failingBatch{b, &f}, err
}

func (b failingBatch) Start(n int) error {
	if err := b.f.do(); err != nil {
		return err
	}
	return b.Batch.Start(n)
}

// TestRunRestores: an error, a panic or an interrupt in the middle leave the card as it was, which was not
// its default.
func TestRunRestores(t *testing.T) {
	boom := errors.New("boom")
	for name, do := range map[string]func(cancel func()) error{
		"error":     func(func()) error { return boom },
		"panic":     func(func()) error { panic("boom") },
		"interrupt": func(cancel func()) error { cancel(); return context.Canceled },
	} {
		t.Run(name, func(t *testing.T) {
			o := quiet()
			o.State = filepath.Join(t.TempDir(), "card")
			m := open(t, o)
			g, err := power.Govern(m.Card())
			if err != nil {
				t.Fatal(err)
			}
			if err := g.SetPowerLimit(640); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			before, after := candidates()
			settings := []Setting{{Cap: 300}, {Cap: 500, Clock: 900}}
			p := planOf(t, m, settings...)
			failed := false
			f := failing{m, func() error {
				if failed = limitOf(t, m) != 640; !failed {
					return nil // the reference
				}
				return do(cancel)
			}}
			var r *Result
			func() {
				defer func() {
					if v := recover(); (v != nil) != (name == "panic") {
						t.Error("panic:", v)
					}
				}()
				r, err = Run(ctx, f, p, before, after, short)
			}()
			if name == "error" && !errors.Is(err, boom) || name == "interrupt" && (!errors.Is(err, context.Canceled) || r == nil || r.Stopped != "cancelled") {
				t.Error(err, r)
			}
			if !failed {
				t.Error("the card was never at another limit: nothing was to be put back")
			}
			again := open(t, o) // as another process would see it
			if v := limitOf(t, again); v != 640 {
				t.Errorf("the card is left at %v W", v)
			}
		})
	}
}

func TestRunRefuses(t *testing.T) {
	before, after := candidates()
	run := func(t *testing.T, m measure.Machine, settings ...Setting) error {
		t.Helper()
		r, err := Run(t.Context(), m, planOf(t, m, settings...), before, after, short)
		if err == nil {
			t.Fatalf("%+v", r)
		}
		return err
	}
	t.Run("permission", func(t *testing.T) {
		o := quiet()
		o.Unprivileged = true
		m := open(t, o)
		if err := run(t, m); !errors.Is(err, power.ErrNotPermitted) {
			t.Error(err)
		}
		if err := Free(m.Card()); err != nil { // it sets nothing
			t.Error(err)
		}
	})
	t.Run("other process", func(t *testing.T) {
		o := quiet()
		o.Other = 50
		m := open(t, o)
		if err := run(t, m); !errors.Is(err, ErrInUse) {
			t.Error(err)
		}
		if err := Free(m.Card()); !errors.Is(err, ErrInUse) {
			t.Error(err)
		}
	})
	t.Run("clock held", func(t *testing.T) {
		o := quiet()
		o.State = filepath.Join(t.TempDir(), "card")
		m := open(t, o)
		g, _ := power.Govern(m.Card())
		if err := g.LockClock(900); err != nil {
			t.Fatal(err)
		}
		for _, s := range []Setting{{Cap: 500}, {Clock: 1200}} {
			if err := run(t, m, s); !errors.Is(err, ErrInUse) {
				t.Error(s, err)
			}
		}
		if err := Free(m.Card()); !errors.Is(err, ErrInUse) {
			t.Error(err)
		}
	})
}

// TestPlanChanged: a limit that another program has set since the plan was made is an error, because it would be restored
// wrongly.
func TestPlanChanged(t *testing.T) {
	m := open(t, quiet())
	p := planOf(t, m, Setting{Cap: 400})
	g, err := power.Govern(m.Card())
	if err != nil {
		t.Fatal(err)
	}
	if err := g.SetPowerLimit(600); err != nil {
		t.Fatal(err)
	}
	before, after := candidates()
	o := short
	d := &dog{}
	o.Watch = func(Original) (Watchdog, error) { return d, nil }
	if r, err := Run(t.Context(), m, p, before, after, o); !errors.Is(err, ErrInUse) || r != nil || limitOf(t, m) != 600 || d.done != 1 {
		t.Error(err, r, d)
	}
}

// ceiling is the highest limit that a card was ever set to.
type ceiling struct {
	measure.Machine
	watts *float64
}

type ceilingCard struct {
	*power.Sim
	watts *float64
}

func (m ceiling) Card() power.Card { return ceilingCard{m.Machine.Card().(*power.Sim), m.watts} }

func (c ceilingCard) SetPowerLimit(watts float64) error {
	*c.watts = max(*c.watts, watts)
	return c.Sim.SetPowerLimit(watts)
}

// TestNeverAbove: a limit that somebody lowered is not raised, unless a higher one is asked for.
func TestNeverAbove(t *testing.T) {
	for asked, highest := range map[Setting]float64{{}: 640, {Cap: 300}: 640, {Clock: 900}: 640, {Cap: 690}: 690} {
		o := quiet()
		o.State = filepath.Join(t.TempDir(), "card")
		m := open(t, o)
		if err := m.Card().(power.Governor).SetPowerLimit(640); err != nil {
			t.Fatal(err)
		}
		var settings []Setting
		if asked != (Setting{}) {
			settings = []Setting{asked}
		}
		seen := 0.0
		before, _ := candidates()
		r, err := Run(t.Context(), ceiling{m, &seen}, planOf(t, m, settings...), before, measure.Candidate{}, short)
		if err != nil || r.Reference != 640 || r.Default != 700 || seen != highest || limitOf(t, m) != 640 {
			t.Errorf("%v: %v; set up to %v W, then %v W", asked, err, seen, limitOf(t, m))
		}
	}
}

func TestNewPlan(t *testing.T) {
	info := power.NewSim(power.DefaultSim()).Info()
	p, err := NewPlan(info, nil, 1)
	if err != nil || len(p.Settings) != 7 || len(p.Order) != 10 || p.Reference != (Setting{Cap: 700}) || p.Default != 700 {
		t.Errorf("%+v %v", p, err)
	}
	if want := Usual(200, 700); !slices.Equal(append(p.Settings, p.Reference), want) || want[0].Cap != 280 || Usual(300, 700)[0].Cap != 300 {
		t.Errorf("%+v, want %+v", p.Settings, want)
	}
	info.PowerLimit = new(450.)
	p, err = NewPlan(info, nil, 1)
	if err != nil || p.Reference != (Setting{Cap: 450}) || slices.ContainsFunc(p.Settings, func(s Setting) bool { return s.Cap > 450 }) || len(p.Settings) != 7 {
		t.Errorf("%+v %v", p, err)
	}
	wrong := []Setting{{Cap: 100}, {Cap: 701}, {Clock: 3000}, {Clock: 299}, {Cap: -1}, {Clock: -1}, {Cap: math.NaN()}}
	for _, s := range wrong {
		if p, err := NewPlan(info, []Setting{s}, 1); err == nil {
			t.Errorf("%+v: %+v", s, p)
		}
	}
	_, err = NewPlan(info, append(wrong, Setting{Cap: 500}), 1)
	for _, s := range wrong {
		if err == nil || !strings.Contains(err.Error(), s.String()) || strings.Contains(err.Error(), "500 W") || strings.Contains(err.Error(), "\n") {
			t.Fatalf("%v: %v", s, err)
		}
	}
	info.MinSMClock, info.MaxSMClock = nil, nil
	if _, err := NewPlan(info, []Setting{{Clock: 3000}, {Clock: 50}}, 1); err != nil {
		t.Error("what is not known is refused:", err)
	}
	if _, err := NewPlan(power.Info{Name: "old"}, nil, 1); !errors.Is(err, power.ErrAbsent) {
		t.Error(err)
	}
}

// TestPredictedAsGood: predictions are compared by their intervals, too.
func TestPredictedAsGood(t *testing.T) {
	point := func(watts, joules, half float64) Point {
		return Point{Setting: Setting{Cap: watts}, Predicted: true, Original: Figures{Joules: joules, Seconds: 1,
			Interval: []float64{joules - half, joules + half}, TimeInterval: []float64{1, 1}}}
	}
	r := &Result{Predicted: true, Reference: 700, Points: []Point{point(300, 0.7, 0.2), point(400, 0.8, 0.05), point(500, 0.99, 0.05), point(700, 1, 0)}}
	r.Finish([]float64{2})
	if c := r.Best[0].Setting; c.Cap != 300 || len(c.AsGood) != 1 || c.AsGood[0].Cap != 400 {
		t.Errorf("%+v", c)
	}
	r.Points = r.Points[3:]
	if r.Finish([]float64{2}); len(r.Best) > 0 {
		t.Errorf("the best of one setting: %+v", r.Best)
	}
}
