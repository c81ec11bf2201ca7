// Package cuda multiplies matrices on an NVIDIA GPU, with libraries that it finds at run time.
//
// [Open] opens the driver (libcuda) and cuBLASLt (of CUDA 12 or 13) without cgo. Building needs neither library, on any platform.
// If a library or a GPU is missing, the error is an [ErrNoGPU] that lists the file names and folders that were tried. Only Linux
// on amd64 and arm64 is supported.
//
// A [Device] owns a CUDA context and one operating-system thread, which makes every call. Closing it
// frees the context and all memory, also after errors.
//
// # Operand slots
//
// cuBLASLt is column-major. A row-major x[M,K] is, column-major, K×M, so both operands lie along K
// and every product is the "TN" form D = Aᵀ·B that all types support:
//
//	stationary  A = w, B = x:  D is N×M column-major, y[M,N] row-major
//	streaming   A = x, B = w:  D is M×N column-major, yᵀ row-major, transposed when read back
//
// FP8 and INT8 need dimensions that are multiples of 16. Operands are padded with zeros, the padding of
// the result is dropped, and [Kernel] records the padded shape. FP8 accumulates
// with promoted partial sums (not "fast"), as PyTorch does by default.
//
// # Quantised weights
//
// Weights in FP8 may have scales ([gemm.Scales]): one for the matrix, one for each output, or one for each 128×128
// elements. cuBLASLt multiplies by these scales; the scales of the activations are 1. Scales per output and per block need CUDA
// 12.9 or later and some cards; otherwise preparing the product is an error.
//
// Weights in four bits ([gemm.Codes]) are multiplied by kernels of this package, compiled at run time for Hopper
// (kernels/dequantise.cu). The card's memory holds packed codes. The kernels dequantise them to BF16 in registers and
// multiply with float32 sums. Operands and result lie as in a stationary product; as the B operand, the weights pass
// through shared memory. With at most [gemm.FewTokens] tokens, the weights can only be the A operand.
//
// # Batches
//
// A [Batch] captures many products into one CUDA graph and replays the graph. Replays are queued a few
// tens of milliseconds ahead: the card never idles between launches, and stops soon after a wait is
// cancelled. A batch may also hold memory traffic (copies, fills, empty launches): see [Device.NewMix].
//
// # Launch sequences
//
// A [Sequence] runs segments, each of one product, and records CUDA events between executions. The events
// tell when each execution ran. [Device.ReadClock] reads the same clock while the card is idle, between two
// readings of the host's clock. So executions can be aligned with sensor readings. The card's clock
// starts when the device is opened, and drifts by about a microsecond in ten minutes.
//
// A device runs one batch or sequence at a time. Its clock is read between them.
package cuda
