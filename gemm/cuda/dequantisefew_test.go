package cuda

import (
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Products of few tokens use the blocks that are fast in bench/results/h200/quantised/few.txt.
func TestFewBlocks(t *testing.T) {
	int4, fp4 := format{group: 128}, format{fp4: true, group: 16, scales: normalScales}
	for _, test := range []struct {
		n, k int
		f    format
		want fewBlock
	}{
		{28672, 4096, int4, fewBlock{7, 8, 2, 1}},
		{28672, 8192, int4, fewBlock{7, 8, 2, 1}},
		{28672, 4096, fp4, fewBlock{7, 8, 2, 1}},
		{14336, 4096, int4, fewBlock{7, 16, 1, 1}},
		{4096, 14336, int4, fewBlock{2, 16, 1, 1}},
		{4096, 4096, int4, fewBlock{2, 16, 1, 1}},
		{8, 64, int4, fewBlock{1, 8, 2, 1}},
	} {
		p := gemm.Problem{M: 16, N: test.n, K: test.k, Type: arith.BF16}
		if got := divideFew(p, test.f, 132); got != test.want {
			t.Errorf("%v %+v: %+v, want %+v", p, test.f, got, test.want)
		}
	}
}

// A block's shared memory fits, whatever the shape and the format.
func TestFewSharedMemory(t *testing.T) {
	d := &Device{info: Info{SMs: 132}}
	for _, group := range []int{0, 16, 32, 128} {
		for _, zeros := range []bool{false, true} {
			for n := 8; n < 200000; n += n/3 + 8 {
				for k := 512; k <= 1<<17; k *= 2 {
					if got := d.few(gemm.Problem{M: 16, N: n, K: k}, format{group: group, zeros: zeros}); got.shared > mostShared || got.blocks.Y == 0 {
						t.Fatalf("%d×%d, groups of %d: %+v", n, k, group, got)
					}
				}
			}
		}
	}
}

// Scales whose products with the kernel's powers of two leave the range of BF16 need the other kernel.
func TestFewScales(t *testing.T) {
	for bits, want := range map[uint16]bool{0: true, 0x3c00: true, 0xbc00: true, 0x44ff: true, 0x4500: false, 0xc500: false, 0x0d80: true, 0x0d7f: false} {
		c := randomCodes(1, 128, 64, false, false, weights.BF16)
		c.Scales[2], c.Scales[3] = byte(bits), byte(bits>>8)
		if fewExact(c) != want {
			t.Errorf("%04x: %v", bits, !want)
		}
	}
	if !fewExact(randomCodes(1, 128, 16, true, false, weights.F8E4M3)) {
		t.Error("FP4 has scales of eight bits")
	}
}
