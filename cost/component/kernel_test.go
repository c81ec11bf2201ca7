package component

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
)

// TestKernelsOfProducts: products of many sizes have the recorded work.
func TestKernelsOfProducts(t *testing.T) {
	f := inventedFacts()
	var b strings.Builder
	for _, typ := range []arith.Type{arith.BF16, arith.FP8, arith.FP32} {
		for _, n := range []int{1, 3, 20, 96, 500, 3000} {
			for _, g := range []Gemm{{M: 1, K: 2}, {M: 16, K: 1000}, {M: 16, K: 1000, Cold: true}, {M: 400, K: 256, Around: 2e6}, {M: 2500, K: 2500, Around: 1e9}, {M: 300, K: 3000, Tile: 4000, L2: 1e6}} {
				g.Type, g.N, g.Bits, g.Moved = typ, n, 0.75, 0.5
				k, err := g.Kernel("k", &f)
				fmt.Fprintf(&b, "%s %d×%d×%d: %.7g of %.7g bytes, %v\n", typ, g.M, g.N, g.K, []float64{k.Ops, k.Asked, k.Memory, k.Again, k.Bits, k.Moved, k.Awake}, g.Bytes(), err)
			}
		}
	}
	for _, g := range []Gemm{{M: 1, N: 1, K: 1}, {Type: arith.BF16, M: 0, N: 1, K: 1}, {Type: arith.BF16, M: 1, N: 1, K: 0}, {Type: arith.BF16, M: 1, N: 1, K: 1}} {
		_, err := g.Kernel("k", &f)
		fmt.Fprintf(&b, "%v\n", err)
	}
	goldenfile.Same(t, "testdata/kernels.txt", []byte(b.String()))
}

// TestKernelsInTurns: each sum of two kernels has the recorded work; each kernel with one impossible number is refused.
func TestKernelsInTurns(t *testing.T) {
	var b strings.Builder
	list := []Kernel{
		{}, {Name: "a", Type: arith.BF16, Ops: 4, Asked: 2, Memory: 2, Bits: 1, Moved: 1, Awake: 1, Seconds: 2, Clock: 1500},
		{Name: "b", Asked: 4, Again: 3, Moved: 0.5, Awake: 0.25, Seconds: 3, Clock: 1600, Idle: 1}, {Name: "c", Moved: 0.3, Launches: 3, Memory: 5, Idle: 0.5},
		{Name: "d", Type: arith.FP8, Bits: 0.4, Ops: 1}, {Name: "e", Type: arith.BF16, Bits: 0.2, Ops: 3, Launches: 1},
	}
	for _, x := range list {
		for _, y := range list {
			k, err := x.And(y)
			fmt.Fprintf(&b, "%q and %q: %s, %v\n", x.Name, y.Name, sixDigits(t, k), err)
		}
	}
	usual := list[1]
	usual.Temperature, usual.Idle, usual.Launches = 40, 1, 2
	for _, f := range fieldsOf {
		for _, v := range []float64{-1, 0, 1e-9, 1e9, math.NaN(), math.Inf(1)} {
			r := Reading{Kernel: usual}
			f.set(&r, v)
			fmt.Fprintf(&b, "%s of %v: %v\n", f.name, v, r.Validate() == nil)
		}
	}
	for _, change := range []func(k *Kernel){func(k *Kernel) { k.Launches = -1 }, func(k *Kernel) { k.Launches = 0 }, func(k *Kernel) { k.Idle = 2 }, func(k *Kernel) { k.Idle = 2.1 },
		func(k *Kernel) { k.Seconds, k.Clock, k.Idle = 0, 0, 9 }, func(k *Kernel) { k.Type = 0 }, func(k *Kernel) { k.Type, k.Ops = 0, 0 }} {
		k := usual
		change(&k)
		fmt.Fprintf(&b, "%v\n", k.Validate())
	}
	for _, k := range append(list, usual, Kernel{Seconds: 1, Idle: 0.25, Launches: 2}, Kernel{Seconds: 1e-9}) {
		fmt.Fprintf(&b, "%q: busy %.6g and %.6g\n", k.Name, busyShare(&k, 0.1), busyShare(&k, 0))
	}
	goldenfile.Same(t, "testdata/turns.txt", []byte(b.String()))
}

// TestAdviceSentences: the sentences of advice change at the recorded savings and errors.
func TestAdviceSentences(t *testing.T) {
	var b strings.Builder
	advice := func(energy, off, edp float64) *Advice {
		c := Choice{Setting: Setting{Clock: 1500, Seconds: 2, Joules: 300 * energy}, Energy: energy, EnergyError: off, Time: 1.04, EDP: edp, Extrapolated: off == 0.002}
		return &Advice{Phase: "prefill", Default: Setting{Clock: 1900, Watts: 600, Joules: 400 * energy, Seconds: 1.5 + off}, Within1: c, Within5: c, LeastEDP: c}
	}
	var all []*Advice
	for _, energy := range []float64{0.8, 0.802, 0.8031, 0.994, 0.99499, 0.9951, 1, 1.2} {
		for _, off := range []float64{0, 0.002, 0.0029, 0.0031, 0.02} {
			a := advice(energy, off, energy+0.001)
			all = append(all, a)
			fmt.Fprintf(&b, "%v ± %v: %s\n", energy, off, strings.Join(a.Text()[1:], "; "))
		}
	}
	for _, i := range []int{0, 7, 24, 39} {
		for j := 0; j < len(all); j += 3 {
			fmt.Fprintf(&b, "%d, %d: %s\n", i, j, strings.Join(Contrast(all[i], all[j]), "; "))
		}
	}
	if Contrast(nil, all[0]) != nil || Contrast(all[0], nil) != nil {
		t.Error("sentences about missing advice")
	}
	goldenfile.Same(t, "testdata/sentences.txt", []byte(b.String()))
}
