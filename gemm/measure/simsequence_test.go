package measure

import (
	"strings"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
)

// shaped returns a product of one constant, which is quickly made.
func shaped(name string, m, n, k int) cuda.Product {
	p := product(name, 1, 1, 1, 0, 1)
	p.Problem.M, p.Problem.N, p.Problem.K = m, n, k
	p.X, p.W = gemm.NewMatrix(p.X.DType, m, k), gemm.NewMatrix(p.W.DType, n, k)
	return p
}

func TestSimulatedSequence(t *testing.T) {
	o := still()
	o.FirstExecutions, o.SlowSequences = nil, 0
	m := Simulated(o)
	big, small := shaped("big", 2048, 2048, 2048), shaped("small", 8, 8, 8)
	tr, err := m.NewSequence(t.Context(), "t", []cuda.Product{big, small}, []cuda.Traffic{{Kind: cuda.Copy, Bytes: 500e6}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.ReadClock()
	if err != nil || r.Before >= r.After {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := tr.Start([]cuda.Segment{{Product: 1, Executions: 40}, {Product: 0, Executions: 100}, {Product: 2, Executions: 20}}); err != nil {
		t.Fatal(err)
	}
	if err := tr.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := tr.Stamps()
	if err != nil {
		t.Fatal(err)
	}
	ends := map[int]time.Duration{}
	for i, s := range list {
		if i > 0 && s.At <= list[i-1].At {
			t.Fatalf("stamp %d at %v, after one at %v", i, s.At, list[i-1].At)
		}
		ends[s.Segment] = s.At
	}
	near(t, "seconds of small products", (ends[0] - list[0].At).Seconds(), 40*simKernel, 1e-3)
	near(t, "seconds of big products", (ends[1] - ends[0]).Seconds(), 100*big.Problem.Ops()/simOps, 1e-3)
	near(t, "seconds of copies", (ends[2] - ends[1]).Seconds(), 20*1e9/simCopyBytes, 1e-3)
	if list[len(list)-1].Done != 20 || r.Card >= list[0].At || list[0].At-r.Card > time.Millisecond {
		t.Errorf("%+v, the clock read before %v", list[len(list)-1], r.Card)
	}
	for range 2 {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := tr.Start([]cuda.Segment{{Executions: 1}}); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("a closed sequence starts: %v", err)
	}
}

func TestSimulatedSequenceRefuses(t *testing.T) {
	m := Simulated(still())
	wrong := product("w", 8, 16, 32, 1, 1)
	wrong.Problem.Type = arith.FP16
	for _, products := range [][]cuda.Product{nil, {wrong}} {
		if tr, err := m.NewSequence(t.Context(), "t", products, nil); err == nil || tr != nil {
			t.Errorf("sequence %v, %v", tr, err)
		}
	}
	tr, err := m.NewSequence(t.Context(), "t", []cuda.Product{product("w", 8, 16, 32, 1, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Start([]cuda.Segment{{Product: 1, Executions: 1}}); err == nil || !strings.Contains(err.Error(), "sequence t") {
		t.Errorf("a product that is not there runs: %v", err)
	}
	if _, err := tr.Stamps(); err == nil {
		t.Error("stamps of no run")
	}
}
