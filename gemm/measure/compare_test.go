package measure

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestFindsWhatIsThere compares zeros, and other draws of the same distribution, with normal weights. Zeros differ by the planted
// energy of the simulated card; the other draws do not differ.
func TestFindsWhatIsThere(t *testing.T) {
	base, variants := pair()
	o := power.DefaultSim()
	o.Leakage = 0
	r, err := Compare(t.Context(), Simulated(o), base, variants, Options{})
	if err != nil {
		t.Fatal(err)
	}
	truth := simStill / (simStill + simToggling*naiveToggling(base.Products[0].W))
	v := r.Variants[0]
	if v.Name != "zeros" || !contains(v.Interval, truth) || contains(v.Interval, 1) {
		t.Errorf("%s: energy %v within %v, want %v", v.Name, v.RelativeEnergy, v.Interval, truth)
	}
	if !contains(v.TimeInterval, 1) {
		t.Errorf("time %v: the shapes are the same", v.TimeInterval)
	}
	if r.Null.Name != "normal (copy)" || !contains(r.Null.Interval, 1) || !r.Valid || r.Stopped != "precision" {
		t.Errorf("null %q within %v, valid %v, stopped by %q", r.Null.Name, r.Null.Interval, r.Valid, r.Stopped)
	}
}

func TestFindsNothingWhereThereIsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing in it is shared by goroutines")
	}
	const runs = 100
	base, _ := pair()
	same := []Candidate{candidate("same", base.Products...)}
	found := 0
	for seed := range uint64(runs) {
		o := power.DefaultSim()
		o.Seed = seed + 1
		r, err := Compare(t.Context(), Simulated(o), base, same, Options{Meter: power.Options{Seed: seed}})
		if err != nil {
			t.Fatal(err)
		}
		if !contains(r.Variants[0].Interval, 1) {
			found++
		}
	}
	t.Logf("a difference was found in %d of %d runs", found, runs)
	if found > runs/10 { // 95 % means one in twenty
		t.Error("that is more than 95 % intervals allow")
	}
}

// TestOnlyTheCopy is a comparison without variants.
func TestOnlyTheCopy(t *testing.T) {
	base, _ := pair()
	r, err := Compare(t.Context(), Simulated(power.DefaultSim()), base, nil, short)
	if err != nil {
		t.Fatal(err)
	}
	if r.Null.Blocks != 1 || r.Variants == nil || len(r.Variants) != 0 {
		t.Errorf("%d blocks of the null, variants %v", r.Null.Blocks, r.Variants)
	}
}

// TestSameProblems: candidates that cannot be compared are refused before any upload.
func TestSameProblems(t *testing.T) {
	w := func(change func(*gemm.Problem)) cuda.Product {
		p := gemm.Problem{M: 8, N: 16, K: 32, Type: arith.BF16}
		change(&p)
		return cuda.Product{Name: "w", Problem: p}
	}
	usual := w(func(*gemm.Problem) {})
	base := candidate("base", usual, usual)
	for name, c := range map[string]struct {
		products []cuda.Product
		want     string
	}{
		"fewer":   {[]cuda.Product{usual}, "base has 2 layers and other has 1"},
		"more":    {[]cuda.Product{usual, usual, usual}, "base has 2 layers and other has 3"},
		"outputs": {[]cuda.Product{usual, w(func(p *gemm.Problem) { p.N = 17 })}, "other is 8x17x32 bf16 stationary"},
		"tokens":  {[]cuda.Product{w(func(p *gemm.Problem) { p.M = 9 }), usual}, "other is 9x16x32 bf16 stationary"},
		"inputs":  {[]cuda.Product{usual, w(func(p *gemm.Problem) { p.K = 31 })}, "other is 8x16x31 bf16 stationary"},
	} {
		m := &counting{Machine: Simulated(power.DefaultSim())}
		r, err := Compare(t.Context(), m, base, []Candidate{candidate("other", c.products...)}, Options{})
		if r != nil || err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "with the same products") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if m.opened > 0 {
			t.Errorf("%s: %d batches were put on the card", name, m.opened)
		}
	}
}

// TestNotFinite: one NaN or infinity anywhere, and nothing is measured.
func TestNotFinite(t *testing.T) {
	for name, special := range map[string]uint16{"NaN": 0x7fc0, "infinity": 0xff80} {
		for where, c := range map[string]struct {
			baseline bool
			operand  func(*cuda.Product) *gemm.Matrix
			want     string
		}{
			"variant's w":  {false, func(p *cuda.Product) *gemm.Matrix { return &p.W }, "batch zeros: w: w is not finite"},
			"variant's x":  {false, func(p *cuda.Product) *gemm.Matrix { return &p.X }, "batch zeros: w: x is not finite"},
			"baseline's w": {true, func(p *cuda.Product) *gemm.Matrix { return &p.W }, "batch normal: w: w is not finite"},
		} {
			base, variants := pair()
			in := &variants[0].Products[0]
			if c.baseline {
				in = &base.Products[0]
			}
			m := c.operand(in)
			f, _ := weights.BF16.Format()
			f.SetElem(m.Data, 3*m.Cols+5, uint32(special))
			machine := Simulated(power.DefaultSim())
			r, err := Compare(t.Context(), machine, base, variants, Options{})
			if r != nil || !errors.Is(err, gemm.ErrNotFinite) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "row 3, column 5") {
				t.Errorf("%s in %s: %v", name, where, err)
			}
			if now := simOf(machine).Now(); now != 0 {
				t.Errorf("%s in %s: the card was used for %v", name, where, now)
			}
		}
	}
}

func TestOutOfMemory(t *testing.T) {
	w := product("w", 500, 500, 500, 1, 1) // two operands of half a megabyte
	base := candidate("base", w, w)        // x is on the card once
	full := fmt.Errorf("batch base: w: %w: cuMemAlloc", cuda.ErrOutOfMemory)
	m := &counting{Machine: Simulated(power.DefaultSim()), refuse: full, at: 1}
	_, err := Compare(t.Context(), m, base, []Candidate{candidate("other", base.Products...)}, Options{})
	const advice = "; all 3 candidates, of about 0.0015 GB each, must fit on the card together: compare fewer "
	if !errors.Is(err, cuda.ErrOutOfMemory) || !strings.HasPrefix(err.Error(), full.Error()+advice) {
		t.Errorf("error %v", err)
	}
	m = &counting{Machine: m.Machine, refuse: errStart}
	if _, err := Compare(t.Context(), m, base, nil, Options{}); err != errStart {
		t.Errorf("another error became %v", err)
	}
}

// TestBatchesAreClosed on every way out of a comparison.
func TestBatchesAreClosed(t *testing.T) {
	fails := func(at int, f faulty) func(int, Batch) Batch {
		return func(i int, b Batch) Batch {
			if i != at {
				return b
			}
			f.Batch = b
			return &f
		}
	}
	errCheck := errors.New("the results are wrong")
	type path struct {
		counting
		opt    Options
		apart  bool // the variant
		opened int
		result bool
		want   string // of the error
	}
	paths := map[string]path{
		"success":                      {opt: short, opened: 3, result: true},
		"wrong options":                {opt: Options{Meter: power.Options{Precision: 2}}, opened: 3, want: "precision 2"},
		"a load fails":                 {counting: counting{wrap: fails(1, faulty{starts: 2})}, opened: 3, result: true, want: errStart.Error()},
		"the variant, apart, fails":    {counting: counting{wrap: fails(2, faulty{starts: 2})}, apart: true, opened: 3, result: true, want: errStart.Error()},
		"the variant, apart, is wrong": {counting: counting{wrap: fails(2, faulty{check: errCheck})}, apart: true, opened: 3, want: errCheck.Error()},
	}
	for at, name := range []string{"baseline", "copy", "variant"} {
		paths[fmt.Sprint("batch ", at, " is refused")] = path{counting: counting{refuse: errStart, at: at}, opened: at, want: errStart.Error()}
		paths[name+" is wrong"] = path{counting: counting{wrap: fails(1, faulty{check: errCheck, checks: at})}, opened: max(2, at+1), want: errCheck.Error()}
	}
	for name, p := range paths {
		m := p.counting
		m.Machine = Simulated(power.DefaultSim())
		base, variants := pair()
		variants[0].Apart = p.apart
		r, err := Compare(t.Context(), &m, base, variants, p.opt)
		if (err == nil) != (p.want == "") || err != nil && !strings.Contains(err.Error(), p.want) || (r != nil) != p.result {
			t.Errorf("%s: result %v, error %v, want %q", name, r, err, p.want)
		}
		if r != nil && (err != nil) != (r.Stopped == "failed") {
			t.Errorf("%s: stopped by %q", name, r.Stopped)
		}
		if m.opened != p.opened || m.closed != m.opened {
			t.Errorf("%s: %d batches of %d were closed, want %d", name, m.closed, m.opened, p.opened)
		}
	}
}

// TestOtherKernels: a candidate in its own memory may run another kernel, and then differs in more than its bits.
func TestOtherKernels(t *testing.T) {
	for _, tile := range []int{1, 2} {
		base, variants := pair()
		variants[0].Apart = true
		m := &counting{Machine: Simulated(power.DefaultSim()), wrap: func(i int, b Batch) Batch {
			k := cuda.Kernel{Tile: 1}
			if i == 2 {
				k.Tile = tile
			}
			return &faulty{Batch: b, starts: 1e6, kernels: []cuda.Kernel{k}}
		}}
		r, err := Compare(t.Context(), m, base, variants, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if told := strings.Contains(strings.Join(r.Invalid, ""), "zeros and normal run different kernels"); told != (tile == 2) || told && r.Valid {
			t.Errorf("kernel %d: valid %v, %q", tile, r.Valid, r.Invalid)
		}
	}
}

// TestNamesMustDiffer: candidates with the same name are an error, because results identify candidates by name.
func TestNamesMustDiffer(t *testing.T) {
	base, _ := pair()
	for _, name := range []string{base.Name, base.Name + " (copy)"} {
		m := &counting{Machine: Simulated(power.DefaultSim())}
		r, err := Compare(t.Context(), m, base, []Candidate{candidate(name, base.Products...)}, Options{})
		if r != nil || err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
			t.Errorf("%v", err)
		}
		if m.closed != m.opened {
			t.Errorf("%d batches of %d were closed", m.closed, m.opened)
		}
	}
}

// TestProgress: candidates are counted, then Ready is called, then the meter's stages follow, and the comparison's time advances
// to its end.
func TestProgress(t *testing.T) {
	base, variants := pair()
	var told []string
	o := short
	o.Ready = func() { told = append(told, "ready") }
	last := Event{}
	o.Progress = func(e Event) {
		switch {
		case e.Stage == "measure" && e.Done == 0:
			told = append(told, e.Stage)
		case e.Stage == "warm-up" && told[len(told)-1] == "warm-up 0 of 0":
		case e.Stage != "measure":
			told = append(told, fmt.Sprintf("%s %d of %d", e.Stage, e.Done, e.Total))
		case e.Total != int64(o.Meter.Time) || e.Done < last.Done || e.Done > e.Total:
			t.Errorf("%+v after %+v", e, last)
		default:
			last = e
		}
	}
	if _, err := Compare(t.Context(), Simulated(power.DefaultSim()), base, variants, o); err != nil {
		t.Fatal(err)
	}
	want := []string{"prepare 1 of 3", "prepare 2 of 3", "prepare 3 of 3", "ready", "self-test 0 of 0", "warm-up 0 of 0", "measure"}
	if !slices.Equal(told, want) || last.Done == 0 {
		t.Errorf("%q, want %q; last %+v", told, want, last)
	}
}

// TestDeviation checks that Deviation is the largest of all results that were compared with the reference.
func TestDeviation(t *testing.T) {
	base, variants := pair()
	variants[0].Apart = true
	found := [][]gemm.Deviation{
		{{Worst: 9, Compared: 1}}, // of memory in which nothing runs
		{{Worst: 9}, {Worst: 0.2, Compared: 4}},
		{{Worst: 0.5, Compared: 5}, {Worst: 0.3, Compared: 6}},
	}
	for at, want := range []gemm.Deviation{2: found[2][0], 1: found[1][1], 0: {}} {
		m := &counting{Machine: Simulated(power.DefaultSim()), wrap: func(i int, b Batch) Batch {
			if i > at {
				return b
			}
			return &faulty{Batch: b, starts: 1e6, found: found[i]}
		}}
		r, err := Compare(t.Context(), m, base, variants, short)
		if err != nil {
			t.Fatal(err)
		}
		if (r.Deviation == nil) != (at == 0) || at > 0 && *r.Deviation != want {
			t.Errorf("batches to %d: deviation %+v, want %+v", at, r.Deviation, want)
		}
	}
}
