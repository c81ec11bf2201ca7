package sweep

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

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
	p := gemm.Problem{M: 8192, N: 256, K: 256, Type: gemm.BF16}
	product := func(w gemm.Matrix) []cuda.Product {
		return []cuda.Product{{Name: "w", Problem: p, X: matrix(p.M, 0xff), W: w}}
	}
	before = measure.Candidate{Name: "original", Products: product(matrix(p.N, 0xff))}
	after = measure.Candidate{Name: "converted", Products: product(matrix(p.N, 0x80))}
	after.Products[0].X = before.Products[0].X
	return before, after
}

func quiet() power.SimOptions {
	o := power.H200Sim()
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
	p, err := NewPlan(m.Card().Info(), settings, 1)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func limitOf(t *testing.T, m measure.Machine) float64 {
	t.Helper()
	g, err := power.Govern(m.Card())
	if err != nil {
		t.Fatal(err)
	}
	v, err := g.PowerLimit()
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
	seen := 0
	o := short
	o.Visit = func(done, total int, s Setting) {
		if seen++; done+1 != seen || total != 6 {
			t.Error(done, total, seen)
		}
	}
	r, err := Run(t.Context(), m, p, before, after, o)
	if err != nil || !r.Valid || r.Stopped != "" || !r.Simulated {
		t.Fatalf("%v %+v", err, r)
	}
	if len(r.Points) != 4 || len(r.Visits) != 6 || r.Points[2].Setting != r.Reference || r.Points[2].Visits != 3 || r.Points[3].Clock != 1200 {
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
	low, middle, top := at[Setting{Cap: 400}].Original, at[Setting{Cap: 550}].Original, at[r.Reference].Original
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
		if sign*b.Both.Value > sign*b.Setting.Value+1e-12 || sign*b.Both.Value > sign*b.Transform.Value+1e-12 || b.Transform.Setting != r.Reference {
			t.Errorf("%+v", b)
		}
	}
	if limitOf(t, m) != 700 {
		t.Error("not put back")
	}
}

// TestRunAlone sweeps the original without anything to compare it with.
func TestRunAlone(t *testing.T) {
	m := open(t, quiet())
	before, _ := candidates()
	r, err := Run(t.Context(), m, planOf(t, m, Setting{Cap: 400}), before, measure.Candidate{}, short)
	if err != nil || !r.Valid || r.After != "" || len(r.Points) != 2 || r.Points[0].Converted != nil || r.Best[0].Both != nil || r.Best[0].Transform != nil {
		t.Errorf("%v %+v", err, r)
	}
}

// failing machines fail, or worse, at the n-th batch's start.
type failing struct {
	measure.Machine
	left *int
	do   func() error
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
	if *b.f.left--; *b.f.left < 0 {
		return b.f.do()
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
			left, lowest := 150, 1000.0
			f := failing{m, &left, func() error {
				lowest = limitOf(t, m)
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
			if lowest == 640 {
				t.Errorf("the card was at %v W when it happened: nothing was to be put back", lowest)
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
		if err := run(t, open(t, o)); !errors.Is(err, power.ErrNotPermitted) {
			t.Error(err)
		}
	})
	t.Run("other process", func(t *testing.T) {
		o := quiet()
		o.Other = 50
		if err := run(t, open(t, o)); !errors.Is(err, ErrHeld) {
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
		if err := run(t, m, Setting{Cap: 500}); !errors.Is(err, ErrHeld) {
			t.Error(err)
		}
	})
}

func TestNewPlan(t *testing.T) {
	info := power.NewSim(power.H200Sim()).Info()
	p, err := NewPlan(info, nil, 1)
	if err != nil || len(p.Settings) != 7 || len(p.Order) != 10 || p.Reference != (Setting{Cap: 700}) || p.Limit != 700 {
		t.Errorf("%+v %v", p, err)
	}
	for _, s := range []Setting{{}, {Cap: 100}, {Cap: 701}, {Clock: 3000}, {Cap: -1}, {Cap: math.NaN()}} {
		if p, err := NewPlan(info, []Setting{s}, 1); err == nil {
			t.Errorf("%+v: %+v", s, p)
		}
	}
	if _, err := NewPlan(power.Info{Name: "old"}, nil, 1); !errors.Is(err, power.ErrAbsent) {
		t.Error(err)
	}
}

func TestMostMisses(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 0, 2: 1, 10: 2, 11: 2, 60: 6} {
		if have := mostMisses(n); have != want {
			t.Errorf("of %d: %d, want %d", n, have, want)
		}
	}
}
