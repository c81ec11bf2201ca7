package cuda

// result is CUresult, and status is cublasStatus_t.
type (
	result int32
	status int32
)

// Values of NVIDIA's enumerations, from the headers of CUDA 12.6 unless a comment names another version. They are part of the
// binary interface and do not change. TestEnums lists each value with its C name and header.
const (
	success          result = 0
	errorOutOfMemory result = 2
	errorNotReady    result = 600

	attrMultiprocessors = 16
	attrL2Bytes         = 38
	attrCapabilityMajor = 75
	attrCapabilityMinor = 76

	contextAuto        = 0
	streamNonBlocking  = 1
	captureThreadLocal = 1
	eventDefault       = 0

	functionMaxDynamicShared = 8

	r32F    = 0
	r16F    = 2
	r8I     = 3
	r32I    = 10
	r16BF   = 14
	r8FE4M3 = 28

	compute16FPedantic = 65
	compute32F         = 68
	compute32FPedantic = 69
	compute32I         = 72
	compute32FTF32     = 77

	opN = 0
	opT = 1

	descTransA        = 3
	descTransB        = 4
	descScalePointerA = 17
	descScalePointerB = 18
	descScaleModeA    = 31 // since CUDA 12.8
	descScaleModeB    = 32

	prefMaxWorkspace = 1
	prefReduction    = 3
	prefAlignmentA   = 5 // for A; the next three numbers are for B, C and D
	prefImplMask     = 12

	reduceInPlace = 1
	reduceCompute = 2

	configAlgorithm = 0
	configTile      = 1
	configSplitK    = 2
	configReduction = 3
	configSwizzle   = 4
	configCustom    = 5
	configStages    = 6
	configInner     = 7
	configCluster   = 8

	capNumericalImpl = 15

	implTensorOps    = 0xfe // all implementation flags that stand for tensor cores
	implAccumulate16 = 1 << 8
)
