package probe

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/component"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
)

// Stress is a kernel that loads mainly one component of a card, or a held-out kernel that tests the fit.
type Stress struct {
	Name     string
	Products []Operands
	Cold     bool           // the products read their weights from memory, not from the cache
	Traffic  []cuda.Traffic // copies, reads, rests and so on, after the products
	HeldOut  bool           // not used in the fit
}

// Operands are a product and the patterns that draw x[M,K] with seed 2 and w[N,K] with seed 3.
type Operands struct {
	gemm.Problem
	X, W pattern.Pattern
}

// Stresses lists the kernels of the fit, then the held-out ones. Every dimension, size in bytes and time is divided by
// shrink, which is 1 for a real card and more for a simulated one.
func Stresses(shrink int) ([]Stress, error) {
	var list []Stress
	for i, s := range append(stresses[:len(stresses):len(stresses)], heldOut...) {
		made, err := s.make(shrink)
		if err != nil {
			return nil, err
		}
		made.HeldOut = i >= len(stresses)
		list = append(list, made)
	}
	return list, nil
}

func (s stress) make(shrink int) (out Stress, err error) {
	smaller := func(v int) int { return max(1, v/shrink) }
	out.Cold = s.cold
	var words []string
	for _, p := range s.products {
		o := Operands{Problem: gemm.Problem{M: smaller(p.m), N: smaller(p.n), K: smaller(p.k), Type: p.typ}}
		for _, one := range []struct {
			text string
			to   *pattern.Pattern
		}{{p.x, &o.X}, {p.w, &o.W}} {
			text := strings.NewReplacer("B", "normal(0,σ)", "C", "const(σ)").Replace(one.text)
			if *one.to, err = pattern.Parse(scaled(text, cost.RandomSigma(p.typ.Operand()))); err != nil {
				return out, err
			}
		}
		out.Products = append(out.Products, o)
		words = append(words, fmt.Sprintf("%v %dx%dx%d", p.typ, o.M, o.N, o.K), p.operands())
	}
	if s.cold {
		words = append(words, "cold")
	}
	for _, t := range s.traffic {
		t.Bytes = t.Bytes / int64(shrink) / 16 * 16
		t.Time = max(t.Time/time.Duration(shrink), min(t.Time, time.Microsecond))
		t.Name = trafficName(t)
		out.Traffic = append(out.Traffic, t)
		words = append(words, t.Name)
	}
	out.Name = strings.Join(words, " ")
	return out, nil
}

// operands returns a short name of the operands.
func (s product) operands() string {
	name := func(text string) string {
		return strings.NewReplacer("B | ", "", "B", "random", "C", "constant").Replace(text)
	}
	switch {
	case s.x == s.w:
		return name(s.w)
	case s.x == "B":
		return "by " + name(s.w)
	}
	return name(s.x) + " by " + name(s.w)
}

func trafficName(t cuda.Traffic) string {
	amount := fmt.Sprintf("%d MiB", t.Bytes/mib)
	if t.Bytes < mib {
		amount = fmt.Sprintf("%d KiB", t.Bytes/kib)
	}
	if t.Rounds > 1 {
		amount += fmt.Sprintf(" x%d", t.Rounds)
	}
	if t.Zeros {
		amount += " zeros"
	}
	blocks := ""
	if t.Blocks > 0 {
		blocks = fmt.Sprintf(" on %d", t.Blocks)
	}
	switch t.Kind {
	case cuda.Copy:
		return "copy " + amount
	case cuda.Fill:
		return "fill " + amount
	case cuda.Read:
		return "read " + amount + blocks
	case cuda.Spin:
		return "spin" + blocks
	case cuda.Rest:
		return fmt.Sprintf("rest %v", t.Time)
	}
	return "launches"
}

// place holds the bytes of L2 cache that one kernel can use, and the card's number of multiprocessors.
type place struct{ cached, multiprocessors float64 }

// kernelOf returns the component model's description of traffic. A copy moves random bits. A fill moves one value.
func kernelOf(t cuda.Traffic, on place) component.Kernel {
	k := component.Kernel{Name: t.Name, Awake: 1}
	bytes := float64(t.Bytes)
	switch t.Kind {
	case cuda.Copy:
		bytes *= 2
		k.Moved = 1
	case cuda.Read:
		bytes *= float64(max(1, t.Rounds))
		k.Moved = 1
	case cuda.Launch, cuda.Rest:
		k.Awake, k.Idle = 0, t.Time.Seconds()
		return k
	case cuda.Spin:
		bytes = 0
	}
	if t.Blocks > 0 {
		k.Awake = min(1, float64(t.Blocks)/on.multiprocessors)
	}
	if t.Zeros {
		k.Moved = 0
	}
	k.Asked = bytes
	if footprint := float64(t.Bytes); footprint > on.cached || t.Kind == cuda.Copy && 2*footprint > on.cached {
		k.Memory = bytes
	}
	return k
}

// kernel returns the component model's description of a stress, without its time. ran are the GPU kernels of its products, if known.
func (s Stress) kernel(toggling func(Stress, Operands) (bits, moved float64, err error), ran []cuda.Kernel, info *cuda.Info, card *component.Facts) (component.Kernel, error) {
	on := place{card.Tiles.L2, card.Tiles.Wave}
	if info != nil && info.L2 > 0 {
		on = place{float64(info.L2), float64(info.SMs)}
	}
	on.cached /= card.Tiles.CacheCopies
	var parts []component.Kernel
	for i, p := range s.Products {
		var one *cuda.Kernel
		if i < len(ran) {
			one = &ran[i]
		}
		g := measure.ComponentGEMM(p.Problem, s.Cold, one, info, card)
		for _, t := range s.Traffic {
			g.Around += 2 * float64(t.Bytes)
		}
		var err error
		if g.Bits, g.Moved, err = toggling(s, p); err != nil {
			return component.Kernel{}, fmt.Errorf("%s: %w", s.Name, err)
		}
		k, err := g.Kernel(s.Name, card)
		if err != nil {
			return k, err
		}
		parts = append(parts, k)
	}
	for _, t := range s.Traffic {
		parts = append(parts, kernelOf(t, on))
	}
	whole := parts[0]
	for _, k := range parts[1:] {
		var err error
		if whole, err = whole.And(k); err != nil {
			return whole, err
		}
	}
	whole.Name = s.Name
	round := func(v *float64) { *v = math.Round(*v*1e4) / 1e4 }
	round(&whole.Bits)
	round(&whole.Moved)
	return whole, nil
}

// costProduct returns a product in the form of the cost model.
func (s Stress) costProduct(p Operands) cost.Product {
	return cost.Product{Type: p.Type, M: p.M, N: p.N, K: p.K, Cold: s.Cold}
}
