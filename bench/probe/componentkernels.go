package probe

import (
	"time"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
)

// stress is a compact form of Stress.
type stress struct {
	products []product
	cold     bool
	traffic  []cuda.Traffic
}

// product has patterns of x and w, in which B stands for random operands and C for a constant.
type product struct {
	typ     arith.Type
	m, n, k int
	x, w    string
}

const kib, mib = 1 << 10, 1 << 20

// multiply returns a product whose operands stay in the cache if they fit.
func multiply(typ arith.Type, m, n, k int, x, w string) stress {
	return stress{products: []product{{typ, m, n, k, x, w}}}
}

// fromMemory returns a product that reads w from memory.
func fromMemory(typ arith.Type, m, n, k int, x, w string) stress {
	s := multiply(typ, m, n, k, x, w)
	s.cold = true
	return s
}

func traffic(t ...cuda.Traffic) stress { return stress{traffic: t} }

// with returns s with traffic t after its products in every execution.
func (s stress) with(t ...cuda.Traffic) stress {
	s.traffic = append(s.traffic[:len(s.traffic):len(s.traffic)], t...)
	return s
}

func copying(size int64) cuda.Traffic { return cuda.Traffic{Kind: cuda.Copy, Bytes: size * mib} }
func filling(size int64) cuda.Traffic { return cuda.Traffic{Kind: cuda.Fill, Bytes: size * mib} }
func resting(t time.Duration) cuda.Traffic {
	return cuda.Traffic{Kind: cuda.Rest, Time: t * time.Microsecond}
}
func spinning(blocks int) cuda.Traffic {
	return cuda.Traffic{Kind: cuda.Spin, Rounds: 50, Blocks: blocks}
}

// cached returns traffic that reads 16 MiB in the L2 cache, on the given number of multiprocessors or all (0).
func cached(blocks, rounds int) cuda.Traffic {
	return cuda.Traffic{Kind: cuda.Read, Bytes: 16 * mib, Rounds: rounds, Blocks: blocks}
}

// streamed returns traffic that reads 256 MiB of memory, on the given number of multiprocessors or all (0).
func streamed(blocks int) cuda.Traffic {
	return cuda.Traffic{Kind: cuda.Read, Bytes: 256 * mib, Blocks: blocks}
}

func zeros(t cuda.Traffic) cuda.Traffic {
	t.Zeros = true
	return t
}

// stresses are the kernels of the fit. The first kernel is measured repeatedly to show drift, and stays below the power cap.
var stresses = []stress{
	multiply(arith.BF16, 2048, 2048, 2048, "C", "C"),
	traffic(cuda.Traffic{Kind: cuda.Launch}),
	traffic(resting(200)),
	traffic(spinning(0)),
	traffic(spinning(16)),
	traffic(cached(0, 64)),
	traffic(zeros(cached(0, 64))),
	traffic(cached(16, 16)),
	traffic(streamed(0)),
	traffic(streamed(16)),
	traffic(filling(8)),
	traffic(filling(512)),
	traffic(copying(2)),
	traffic(copying(6)),
	traffic(copying(12)),
	traffic(copying(12), resting(10)),
	traffic(copying(256)),
	traffic(copying(1024)),
	fromMemory(arith.BF16, 16, 8192, 8192, "B", "B"),
	fromMemory(arith.BF16, 16, 8192, 8192, "B", "zeros"),
	fromMemory(arith.FP8, 16, 8192, 8192, "B", "B"),
	multiply(arith.BF16, 2048, 2048, 2048, "zeros", "zeros"),
	multiply(arith.BF16, 2048, 2048, 2048, "B", "B"),
	multiply(arith.BF16, 2048, 2048, 2048, "B", "B").with(resting(25)),
	multiply(arith.BF16, 1024, 1024, 1024, "B", "B"),
	multiply(arith.BF16, 128, 128, 8192, "B", "B"),
	multiply(arith.BF16, 1024, 1024, 16384, "B", "B"),
	multiply(arith.BF16, 8192, 8192, 512, "B", "B"),
	multiply(arith.BF16, 4096, 4096, 4096, "B", "B"),
	multiply(arith.BF16, 4096, 4096, 4096, "B", "zeros"),
	multiply(arith.BF16, 256, 8192, 8192, "B", "B"),
	multiply(arith.FP16, 2048, 2048, 2048, "C", "C"),
	multiply(arith.FP16, 2048, 2048, 2048, "B", "B"),
	multiply(arith.FP8, 2048, 2048, 2048, "C", "C"),
	multiply(arith.FP8, 2048, 2048, 2048, "B", "B"),
	multiply(arith.FP8, 4096, 4096, 4096, "B", "B"),
	multiply(arith.FP8, 4096, 4096, 4096, "C", "C"),
	multiply(arith.FP8, 8192, 8192, 8192, "C", "C"),
	multiply(arith.INT8, 2048, 2048, 2048, "zeros", "zeros"),
	multiply(arith.INT8, 2048, 2048, 2048, "B", "B"),
	multiply(arith.TF32, 2048, 2048, 2048, "zeros", "zeros"),
	multiply(arith.TF32, 2048, 2048, 2048, "B", "B"),
	multiply(arith.FP32, 2048, 2048, 2048, "zeros", "zeros"),
	multiply(arith.FP32, 2048, 2048, 2048, "B", "B"),
}

// heldOut are kernels outside the fit. The first eight are at or near the power cap; the others span the power below it:
// few multiprocessors, reads within the cache and from memory, rests, thin and small products, zeros.
var heldOut = []stress{
	multiply(arith.BF16, 8192, 4096, 4096, "B", "B"),
	multiply(arith.BF16, 4096, 14336, 4096, "B", "B | round(4)"),
	multiply(arith.BF16, 8192, 1024, 4096, "B", "B | grid(4)"),
	multiply(arith.FP8, 4096, 8192, 4096, "B", "B"),
	multiply(arith.FP16, 3072, 3072, 3072, "B", "B"),
	multiply(arith.BF16, 2048, 2048, 2048, "B", "B").with(copying(48)),
	fromMemory(arith.BF16, 64, 4096, 14336, "B", "B | round(4)"),
	traffic(copying(384)),

	traffic(spinning(8)),
	traffic(spinning(66)),
	traffic(cached(4, 8)),
	traffic(cached(48, 32)),
	traffic(zeros(cached(48, 32))),
	traffic(streamed(48)),
	traffic(zeros(streamed(48))),
	traffic(cached(0, 16), resting(20)),
	traffic(copying(3)),
	traffic(copying(8), resting(5)),
	traffic(copying(128), resting(60)),
	traffic(filling(2)),
	traffic(filling(128), resting(30)),
	fromMemory(arith.BF16, 16, 14336, 4096, "B", "B"),
	fromMemory(arith.BF16, 64, 8192, 4096, "B", "B"),
	fromMemory(arith.BF16, 64, 8192, 4096, "zeros", "B"),
	fromMemory(arith.BF16, 16, 4096, 4096, "B", "B").with(resting(20)),
	fromMemory(arith.FP8, 64, 8192, 8192, "B", "zeros"),
	multiply(arith.BF16, 8192, 8192, 128, "B", "B"),
	multiply(arith.BF16, 2048, 2048, 64, "B", "B"),
	multiply(arith.BF16, 32, 2048, 4096, "B", "B"),
	multiply(arith.BF16, 128, 1024, 8192, "B", "B"),
	multiply(arith.BF16, 256, 256, 8192, "B", "B"),
	multiply(arith.BF16, 1024, 1024, 1024, "zeros", "zeros"),
	multiply(arith.BF16, 4096, 8192, 4096, "zeros", "zeros"),
	multiply(arith.BF16, 4096, 1024, 4096, "B", "B | sparse(0.9)"),
	multiply(arith.BF16, 4096, 4096, 2048, "B", "C"),
	multiply(arith.BF16, 2048, 2048, 2048, "B", "B").with(resting(80)),
	multiply(arith.BF16, 4096, 4096, 4096, "B", "B").with(resting(200)),
	{products: []product{{arith.BF16, 2048, 2048, 128, "B", "B"}, {arith.BF16, 2048, 128, 2048, "B", "B"}}}, // as in attention
	multiply(arith.FP8, 1024, 1024, 1024, "B", "B"),
	multiply(arith.FP8, 4096, 2048, 4096, "zeros", "zeros"),
	multiply(arith.FP16, 512, 4096, 2048, "B", "B"),
	multiply(arith.FP16, 2048, 2048, 2048, "B", "B").with(resting(50)),
	multiply(arith.INT8, 512, 512, 8192, "B", "B"),
	multiply(arith.TF32, 1024, 1024, 1024, "B", "B"),
	multiply(arith.FP32, 1024, 1024, 1024, "B", "B"),
}

// Pair is two held-out kernels that differ in one component alone.
type Pair struct {
	Kernels   [2]string // their names
	Component string
}

// Pairs lists the pairs among the held-out kernels.
func Pairs() (list []Pair, err error) {
	for _, p := range []struct {
		one, other stress
		component  string
	}{
		{traffic(spinning(8)), traffic(spinning(66)), "multiprocessors awake"},
		{traffic(zeros(cached(48, 32))), traffic(cached(48, 32)), "bits on the chip"},
		{traffic(zeros(streamed(48))), traffic(streamed(48)), "bits that come from memory"},
		{traffic(cached(48, 32)), traffic(streamed(48)), "memory, and the path from memory"},
		{fromMemory(arith.BF16, 64, 8192, 4096, "zeros", "B"), fromMemory(arith.BF16, 64, 8192, 4096, "B", "B"), "multipliers"},
	} {
		var pair Pair
		for i, s := range []stress{p.one, p.other} {
			made, err := s.make(1)
			if err != nil {
				return nil, err
			}
			pair.Kernels[i] = made.Name
		}
		pair.Component = p.component
		list = append(list, pair)
	}
	return list, nil
}
