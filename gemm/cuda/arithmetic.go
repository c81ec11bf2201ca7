package cuda

import "github.com/lowtoggle/lowtoggle/cost/arith"

// arithmetic holds cuBLASLt's settings for products of one type.
type arithmetic struct {
	modes           []mode // tried in this order
	operand, output int32  // cudaDataType
	multiple        int    // every dimension is padded to a multiple of this number
	capability      int    // least compute capability times ten
	implementation  uint64 // mask of allowed numerical implementations
}

// mode is a cublasComputeType and the cudaDataType of its alpha and beta.
type mode struct{ compute, scale int32 }

const (
	anyImplementation = ^uint64(0)
	noTensorCores     = ^uint64(implTensorOps)
)

// According to its documentation, the pedantic float16 mode uses no tensor cores; the mask enforces this. If there is
// no float16 kernel without tensor cores, CUDA cores read float16 and accumulate in float32.
var arithmetics = map[arith.Type]arithmetic{
	arith.FP32:     {[]mode{{compute32F, r32F}}, r32F, r32F, 1, 50, noTensorCores},
	arith.TF32:     {[]mode{{compute32FTF32, r32F}}, r32F, r32F, 1, 80, anyImplementation},
	arith.FP16:     {[]mode{{compute32F, r32F}}, r16F, r16F, 1, 70, anyImplementation},
	arith.BF16:     {[]mode{{compute32F, r32F}}, r16BF, r16BF, 1, 80, anyImplementation},
	arith.FP16CUDA: {[]mode{{compute16FPedantic, r16F}, {compute32FPedantic, r32F}}, r16F, r16F, 1, 53, noTensorCores},
	arith.FP8:      {[]mode{{compute32F, r32F}}, r8FE4M3, r16BF, 16, 89, anyImplementation},
	arith.INT8:     {[]mode{{compute32I, r32I}}, r8I, r32I, 16, 75, anyImplementation},
}

// ones is 1 in each scale type, little-endian; zero is 0 in all of them.
var (
	ones = map[int32][]byte{r32F: {0, 0, 0x80, 0x3F}, r16F: {0, 0x3C}, r32I: {1, 0, 0, 0}}
	zero = make([]byte, 4)
)
