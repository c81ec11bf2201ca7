package measure

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// seconds returns the time of one pass through products on the simulated card.
func seconds(products []cuda.Product) (s float64) {
	for _, p := range products {
		s += max(p.Problem.Ops()/simOps, p.Problem.Bytes()/simBytes)
	}
	return s
}

// TestPerPass: an execution makes several passes. Joules and seconds are per pass, whatever their number.
func TestPerPass(t *testing.T) {
	small, large := product("small", 32, 48, 64, 0.02, 1), product("large", 512, 256, 128, 0.02, 2)
	passes := map[int]bool{}
	for _, products := range [][]cuda.Product{{small}, {small, small}, {large}, {small, large, large}} {
		m := Simulated(still())
		batch, err := m.NewBatch(t.Context(), "base", products, cuda.Options{})
		if err != nil {
			t.Fatal(err)
		}
		passes[batch.Passes()] = true
		r, err := Compare(t.Context(), m, candidate("base", products...), nil, short)
		if err != nil {
			t.Fatal(err)
		}
		var ops float64
		for _, p := range products {
			ops += p.Problem.Ops()
		}
		b := r.Baseline
		near(t, "seconds", b.Seconds, seconds(products), 1e-4)
		near(t, "joules", b.Joules, b.Watts*b.Seconds, 1e-4)
		near(t, "operations", r.Operations, ops, 0)
		near(t, "TFLOP/s", r.Teraflops, ops/seconds(products)/1e12, 1e-4)
		for _, w := range slices.Concat(r.Blocks[0].Windows, r.Steady.Windows) {
			near(t, "a window's seconds", w.Seconds, b.Seconds, 1e-4)
			near(t, "a window's joules", w.PerExecution, w.Watts*w.Seconds, 1e-6)
			if w.Executions%batch.Passes() != 0 || float64(w.Executions)*w.Seconds < w.Length {
				t.Errorf("%d passes of %v s in a window of %v s, %d in an execution", w.Executions, w.Seconds, w.Length, batch.Passes())
			}
		}
		for _, s := range r.Steady.ExecutionTimes {
			near(t, "an execution time", s, b.Seconds, 1e-4)
		}
	}
	if len(passes) < 3 || passes[1] {
		t.Errorf("passes %v: this test tests nothing", passes)
	}
}

// TestEqualPasses: the card chooses the first batch's number of passes, and the other batches are asked for it.
func TestEqualPasses(t *testing.T) {
	base, variants := pair()
	for name, run := range map[string]func(m Machine, cold bool) error{
		"compare": func(m Machine, cold bool) error {
			_, err := Compare(t.Context(), m, base, variants, Options{Cold: cold, Meter: short.Meter})
			return err
		},
		"series": func(m Machine, cold bool) error {
			_, err := RunSeries(t.Context(), m, surveyed, point("base", 1), nil, SeriesOptions{Cold: cold})
			return err
		},
	} {
		for _, cold := range []bool{false, true} {
			chosen := 0
			m := &counting{Machine: Simulated(power.DefaultSim()), wrap: func(i int, b Batch) Batch {
				if i == 0 {
					chosen = b.Passes() / b.Copies()
				}
				return b
			}}
			if err := run(m, cold); err != nil {
				t.Fatal(err)
			}
			var repeats []int
			for _, o := range m.options {
				repeats = append(repeats, o.Repeat)
			}
			if want := append([]int{0}, slices.Repeat([]int{chosen}, m.opened-1)...); chosen < 2 || m.opened < 3 || !slices.Equal(repeats, want) {
				t.Errorf("%s, cold %v: batches are asked for %v repeats, want %v", name, cold, repeats, want)
			}
		}
	}
}

// TestGroups gathers products that are alike, in the order in which they come, each with what runs
// for the first of them.
func TestGroups(t *testing.T) {
	a, b := product("a", 8, 16, 32, 1, 1), product("b", 8, 32, 16, 1, 2)
	base := candidate("base", a, b, a, a)
	m := &counting{Machine: Simulated(power.DefaultSim())}
	r, err := Compare(t.Context(), m, base, nil, short)
	if err != nil {
		t.Fatal(err)
	}
	want := []Group{{Problem: a.Problem, Count: 3}, {Problem: b.Problem, Count: 1}}
	if !slices.Equal(r.Products, want) {
		t.Errorf("groups %v, want %v", r.Products, want)
	}
	kernels := make([]cuda.Kernel, 4)
	for i := range kernels {
		kernels[i].Tile = i + 1
	}
	m.wrap = func(_ int, b Batch) Batch { return &faulty{Batch: b, starts: 1e6, kernels: kernels} }
	if r, err = Compare(t.Context(), m, base, nil, short); err != nil {
		t.Fatal(err)
	}
	for i, kernel := range []int{1, 2} {
		if g := r.Products[i]; g.Kernel == nil || g.Kernel.Tile != kernel || g.Count != want[i].Count {
			t.Errorf("group %d: %+v, want the kernel of product %d", i, g, kernel-1)
		}
	}
}

// TestCold: cold weights are stacked until layers come to 32 MB on average, and are there more than
// once; a pass is all the same one through the products as they were given.
func TestCold(t *testing.T) {
	base := candidate("base", product("a", 32, 48, 64, 0.02, 1), product("b", 32, 480, 64, 0.02, 2))
	bytes := 0
	for _, p := range base.Products {
		bytes += len(p.W.Data)
	}
	for _, cold := range []bool{false, true} {
		o := short
		o.Cold = cold
		r, err := Compare(t.Context(), Simulated(still()), base, nil, o)
		if err != nil {
			t.Fatal(err)
		}
		copies, layers := 1, 0
		if cold {
			copies, layers = 2, 64<<20
		}
		if r.Cold != cold || r.Copies != copies || r.WeightBytes != int64(copies*r.Stack*bytes) {
			t.Errorf("cold %v: %v, %d copies of a stack of %d, %d bytes of %d each", cold, r.Cold, r.Copies, r.Stack, r.WeightBytes, bytes)
		}
		if (r.Stack-1)*bytes >= max(1, layers) || r.Stack*bytes < layers {
			t.Errorf("cold %v: a stack of %d for %d bytes", cold, r.Stack, bytes)
		}
		near(t, "seconds", r.Baseline.Seconds, seconds(base.Products), 1e-4)
		near(t, "operations", r.Operations, base.Products[0].Problem.Ops()+base.Products[1].Problem.Ops(), 1e-12)
	}
}

// TestResultJSON checks the field names that scripts use, and that unknown values are left out.
func TestResultJSON(t *testing.T) {
	base, variants := pair()
	o := Options{Meter: power.Options{Time: time.Second, Date: time.Unix(0, 0).UTC(), Command: "lowtoggle measure"}}
	r, err := Compare(t.Context(), Simulated(power.DefaultSim()), base, variants, o)
	if err != nil {
		t.Fatal(err)
	}
	js, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(js, &doc); err != nil {
		t.Fatal(err)
	}
	has := func(what string, v any, fields ...string) {
		for _, f := range fields {
			if object, _ := v.(map[string]any); object[f] == nil {
				t.Errorf("%s has no %s", what, f)
			}
		}
	}
	has("the result", doc, "gpu", "date", "command", "products", "operations", "tflops", "cold", "weight_copies", "weight_bytes", "card", "blocks", "self_test", "steady")
	has("null", doc["null"], "relative_energy", "interval")
	has("a variant", doc["variants"].([]any)[0], "name", "relative_energy", "interval", "relative_time", "joules", "watts", "seconds", "clock_mhz", "capped")
	has("a product", doc["products"].([]any)[0], "problem", "count")
	for _, f := range []string{"platform", "deviation"} {
		if v, ok := doc[f]; ok {
			t.Errorf("%s is %v where nothing is known", f, v)
		}
	}
	if want := (gemm.Problem{M: 32, N: 48, K: 64, Type: arith.BF16}); r.Products[0].Problem != want {
		t.Errorf("problem %v, want %v", r.Products[0].Problem, want)
	}
}
