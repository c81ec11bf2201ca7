package probe

import (
	"fmt"
	"math"
	"strings"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/component"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
)

// Stress is a kernel that loads mainly one component of a card, or a held-out kernel that tests the fit.
type Stress struct {
	Name    string
	Product gemm.Problem    // type 0: no product
	X, W    pattern.Pattern // draw x[M,K] with seed 2 and w[N,K] with seed 3
	Cold    bool            // the product reads its weights from memory and not from the cache
	Traffic []cuda.Traffic  // copies, fills or launches beside the product
	HeldOut bool            // not used in the fit
}

// stress is a compact form of Stress: a product with patterns of x and w, in which B stands for random operands and
// C for a constant.
type stress struct {
	typ     arith.Type
	m, n, k int
	x, w    string
	cold    bool
	traffic []cuda.Traffic
}

const kib, mib = 1 << 10, 1 << 20

func traffic(kind cuda.TrafficKind, bytes int64) []cuda.Traffic {
	return []cuda.Traffic{{Name: "traffic", Kind: kind, Bytes: bytes}}
}

func launches() []cuda.Traffic { return traffic(cuda.Launch, 0) }

// stresses are the kernels of the fit. The first is read repeatedly to show drift; it is below the power cap.
var stresses = []stress{
	{typ: arith.BF16, m: 2048, n: 2048, k: 2048, x: "C", w: "C"},
	{traffic: launches()},
	{traffic: traffic(cuda.Fill, 8*mib)},
	{traffic: traffic(cuda.Fill, 512*mib)},
	{traffic: traffic(cuda.Copy, 2*mib)},
	{traffic: traffic(cuda.Copy, 6*mib)},
	{traffic: traffic(cuda.Copy, 12*mib)},
	{traffic: traffic(cuda.Copy, 256*mib)},
	{traffic: traffic(cuda.Copy, 1024*mib)},
	{typ: arith.BF16, m: 16, n: 8192, k: 8192, x: "B", w: "B", cold: true},
	{typ: arith.BF16, m: 16, n: 8192, k: 8192, x: "B", w: "zeros", cold: true},
	{typ: arith.FP8, m: 16, n: 8192, k: 8192, x: "B", w: "B", cold: true},
	{typ: arith.BF16, m: 2048, n: 2048, k: 2048, x: "zeros", w: "zeros"},
	{typ: arith.BF16, m: 2048, n: 2048, k: 2048, x: "B", w: "B"},
	{typ: arith.BF16, m: 1024, n: 1024, k: 1024, x: "B", w: "B"},
	{typ: arith.BF16, m: 1024, n: 1024, k: 16384, x: "B", w: "B"},
	{typ: arith.BF16, m: 8192, n: 8192, k: 512, x: "B", w: "B"},
	{typ: arith.BF16, m: 4096, n: 4096, k: 4096, x: "B", w: "B"},
	{typ: arith.BF16, m: 4096, n: 4096, k: 4096, x: "B", w: "zeros"},
	{typ: arith.BF16, m: 4096, n: 4096, k: 4096, x: "B", w: "B | round(4)"},
	{typ: arith.BF16, m: 8192, n: 8192, k: 8192, x: "B", w: "B"},
	{typ: arith.BF16, m: 256, n: 8192, k: 8192, x: "B", w: "B"},
	{typ: arith.FP16, m: 2048, n: 2048, k: 2048, x: "C", w: "C"},
	{typ: arith.FP16, m: 2048, n: 2048, k: 2048, x: "B", w: "B"},
	{typ: arith.FP16, m: 4096, n: 4096, k: 4096, x: "B", w: "B"},
	{typ: arith.FP8, m: 2048, n: 2048, k: 2048, x: "C", w: "C"},
	{typ: arith.FP8, m: 2048, n: 2048, k: 2048, x: "B", w: "B"},
	{typ: arith.FP8, m: 4096, n: 4096, k: 4096, x: "B", w: "B"},
	{typ: arith.FP8, m: 4096, n: 4096, k: 4096, x: "C", w: "C"},
	{typ: arith.FP8, m: 8192, n: 8192, k: 8192, x: "C", w: "C"},
	{typ: arith.INT8, m: 2048, n: 2048, k: 2048, x: "zeros", w: "zeros"},
	{typ: arith.INT8, m: 2048, n: 2048, k: 2048, x: "B", w: "B"},
	{typ: arith.INT8, m: 4096, n: 4096, k: 4096, x: "B", w: "B"},
	{typ: arith.TF32, m: 2048, n: 2048, k: 2048, x: "zeros", w: "zeros"},
	{typ: arith.TF32, m: 2048, n: 2048, k: 2048, x: "B", w: "B"},
	{typ: arith.FP32, m: 2048, n: 2048, k: 2048, x: "zeros", w: "zeros"},
	{typ: arith.FP32, m: 2048, n: 2048, k: 2048, x: "B", w: "B"},
}

// heldOut are ten kernels outside the fit: other shapes and patterns, layers of Llama, copies of other sizes, and
// mixes.
var heldOut = []stress{
	{typ: arith.BF16, m: 8192, n: 4096, k: 4096, x: "B", w: "B"},
	{typ: arith.BF16, m: 4096, n: 14336, k: 4096, x: "B", w: "B | round(4)"},
	{typ: arith.BF16, m: 4096, n: 4096, k: 14336, x: "B", w: "B | sparse(0.5)"},
	{typ: arith.BF16, m: 8192, n: 1024, k: 4096, x: "B", w: "B | grid(4)"},
	{typ: arith.BF16, m: 16, n: 14336, k: 4096, x: "B", w: "B", cold: true},
	{typ: arith.BF16, m: 64, n: 4096, k: 14336, x: "B", w: "B | round(4)", cold: true},
	{typ: arith.FP8, m: 4096, n: 8192, k: 4096, x: "B", w: "B"},
	{typ: arith.FP16, m: 3072, n: 3072, k: 3072, x: "B", w: "B"},
	{traffic: traffic(cuda.Copy, 384*mib)},
	{typ: arith.BF16, m: 2048, n: 2048, k: 2048, x: "B", w: "B", traffic: traffic(cuda.Copy, 48*mib)},
}

// Stresses lists the kernels of the fit, then the held-out ones. Every dimension and size in bytes is divided by shrink,
// which is 1 for a real card and more for a simulated one.
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
	var words []string
	if s.typ != 0 {
		out.Product = gemm.Problem{M: smaller(s.m), N: smaller(s.n), K: smaller(s.k), Type: s.typ}
		out.Cold = s.cold
		for _, o := range []struct {
			text string
			to   *pattern.Pattern
		}{{s.x, &out.X}, {s.w, &out.W}} {
			text := strings.NewReplacer("B", "normal(0,σ)", "C", "const(σ)").Replace(o.text)
			if *o.to, err = pattern.Parse(scaled(text, cost.RandomSigma(s.typ.Operand()))); err != nil {
				return out, err
			}
		}
		words = append(words, fmt.Sprintf("%v %dx%dx%d", s.typ, out.Product.M, out.Product.N, out.Product.K), s.operands())
		if s.cold {
			words = append(words, "cold")
		}
	}
	for _, t := range s.traffic {
		t.Bytes = t.Bytes / int64(shrink) / 4 * 4
		out.Traffic = append(out.Traffic, t)
		words = append(words, trafficName(t))
	}
	out.Name = strings.Join(words, " ")
	return out, nil
}

// operands names the operands in a word or two.
func (s stress) operands() string {
	name := func(text string) string {
		return strings.NewReplacer("B | ", "", "B", "random", "C", "constant").Replace(text)
	}
	if s.x == s.w {
		return name(s.w)
	}
	return "by " + name(s.w)
}

func trafficName(t cuda.Traffic) string {
	amount := fmt.Sprintf("%d MiB", t.Bytes/mib)
	if t.Bytes < mib {
		amount = fmt.Sprintf("%d KiB", t.Bytes/kib)
	}
	switch t.Kind {
	case cuda.Copy:
		return "copy " + amount
	case cuda.Fill:
		return "fill " + amount
	}
	return "launches"
}

// kernelOf describes traffic. A copy moves random bits; a fill moves one value.
func kernelOf(t cuda.Traffic, cached float64) component.Kernel {
	k := component.Kernel{Name: t.Name, Awake: 1}
	bytes := float64(t.Bytes)
	switch t.Kind {
	case cuda.Copy:
		bytes, k.Moved = 2*bytes, 1
	case cuda.Launch:
		k.Awake = 0
		return k
	}
	k.Asked = bytes
	if bytes > cached {
		k.Memory = bytes
	}
	return k
}

// kernel describes the work of a stress. Its time is not known yet.
func (s Stress) kernel(toggling func(Stress) (bits, moved float64, err error), ran *cuda.Kernel, info *cuda.Info, card *component.Facts) (component.Kernel, error) {
	var whole component.Kernel
	l2 := card.Tiles.L2
	if info != nil && info.L2 > 0 {
		l2 = float64(info.L2)
	}
	for i, t := range s.Traffic {
		k := kernelOf(t, l2/card.Tiles.CacheCopies)
		if i == 0 {
			whole = k
			continue
		}
		var err error
		if whole, err = whole.And(k); err != nil {
			return whole, err
		}
	}
	if s.Product.Type != 0 {
		g := measure.ComponentGEMM(s.Product, s.Cold, ran, info, card)
		for _, t := range s.Traffic {
			g.Around += 2 * float64(t.Bytes)
		}
		var err error
		if g.Bits, g.Moved, err = toggling(s); err != nil {
			return whole, fmt.Errorf("%s: %w", s.Name, err)
		}
		product, err := g.Kernel(s.Name, card)
		if err != nil {
			return whole, err
		}
		if len(s.Traffic) == 0 {
			whole = product
		} else if whole, err = product.And(whole); err != nil {
			return whole, err
		}
	}
	whole.Name = s.Name
	round := func(v *float64) { *v = math.Round(*v*1e4) / 1e4 }
	round(&whole.Bits)
	round(&whole.Moved)
	return whole, nil
}

// costProduct is the product in the form of the cost model.
func (s Stress) costProduct() cost.Product {
	return cost.Product{Type: s.Product.Type, M: s.Product.M, N: s.Product.N, K: s.Product.K, Cold: s.Cold}
}
