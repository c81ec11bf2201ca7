package gemm

import (
	"math"

	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// Tolerance bounds the deviation of a correct result y from the reference r. Every element must satisfy |y−r| ≤
// Output·|r| + Sum·‖x row‖·‖w row‖ + Smallest, and all elements together ‖y−r‖ ≤ Relative·‖r‖ + Smallest·√count.
//
// For random operands |r| is close to ‖x row‖·‖w row‖/√K, so an element computed from wrong data exceeds its bound by
// far. If sums cancel and ‖r‖ is smaller, the larger value is used, because rounding errors do not cancel.
type Tolerance struct {
	Output   float64 // rounding of the stored result, and of partial results added in its format
	Sum      float64 // rounding of operands and accumulators
	Smallest float64 // half the output's smallest subnormal
	Relative float64 // limit for the whole matrix, in the Frobenius norm
}

// Tolerance returns the tolerance of p's arithmetic. For INT8 it is zero, so results must be equal. Split-K kernels may
// add some partial results in the output's format, so a stored result may differ by four half units in the last place.
func (p Problem) Tolerance() Tolerance {
	root := math.Sqrt(float64(p.K))
	bf16, fp16, fp32 := math.Ldexp(1, -9), math.Ldexp(1, -11), math.Ldexp(1, -24)
	switch p.Type {
	case arith.FP32: // float32 accumulators that add in a different order from the reference
		return Tolerance{Output: 4 * fp32, Sum: 4 * fp32 * root, Relative: 8 * fp32 * root}
	case arith.TF32: // operands lose 13 bits, possibly by truncation
		return Tolerance{Output: 4 * fp32, Sum: math.Ldexp(1, -9), Relative: math.Ldexp(1, -8)}
	case arith.FP16:
		return Tolerance{Output: 4 * fp16, Sum: 4*fp16/root + 16*fp32*root, Smallest: math.Ldexp(1, -25), Relative: 4 * fp16}
	case arith.BF16:
		return Tolerance{Output: 4 * bf16, Sum: 4*bf16/root + 16*fp32*root, Relative: 4 * bf16}
	case arith.FP16CUDA: // a float16 accumulator's error grows with √K
		return Tolerance{Output: 4 * fp16, Sum: 8 * fp16, Smallest: math.Ldexp(1, -25), Relative: 4*fp16 + 2*fp16*root}
	case arith.FP8: // tensor cores align FP8 products to about 14 bits before adding them
		return Tolerance{Output: 4 * bf16, Sum: 16 * bf16 / root, Relative: 8 * bf16}
	}
	return Tolerance{}
}
