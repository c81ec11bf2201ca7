// Package cuda multiplies matrices on an NVIDIA GPU, with libraries that it finds at run time.
//
// [Open] opens the driver (libcuda) and cuBLASLt (of CUDA 12 or 13) without cgo. Neither library is needed for
// building, on any platform. If a library or a GPU is missing, the error is an [ErrNoGPU] that lists the files and
// folders that were tried. Only Linux on amd64 and arm64 is supported.
//
// A [Device] owns a CUDA context and one operating-system thread, which makes all calls. Closing the device frees the
// context and all memory, also after errors.
//
// # Operand slots
//
// cuBLASLt is column-major. A row-major x[M,K] is a K×M matrix in column-major order. Both operands therefore lie along
// K, and every product has the "TN" form D = Aᵀ·B, which all types support:
//
//	stationary  A = w, B = x:  D is N×M column-major, y[M,N] row-major
//	streaming   A = x, B = w:  D is M×N column-major, yᵀ row-major, transposed when read back
//
// FP8 and INT8 need dimensions that are multiples of 16. Operands are padded with zeros, and the padding of the result
// is dropped. [Kernel] contains the padded shape. FP8 accumulates with promoted partial sums (not "fast"), as PyTorch
// does by default.
//
// # Quantised weights
//
// Weights in FP8 may have scales ([gemm.Scales]): one for the matrix, one for each output, or one for each 128×128
// elements. cuBLASLt multiplies by these scales; the scales of the activations are 1. Scales per output and per block
// need CUDA 12.9 or later and a card that supports them. Otherwise preparing the product returns an error.
//
// Weights in four bits ([gemm.Codes]) are multiplied by kernels of this package, compiled at run time for Hopper
// (kernels/dequantise.cu). The card's memory holds packed codes. The kernels dequantise the codes to BF16 in registers
// and multiply with float32 sums. Operands and result have the layout of a stationary product. If the weights are the B
// operand, they pass through shared memory. With at most [gemm.FewTokens] tokens, the weights can only be the A
// operand.
//
// # Batches
//
// A [Batch] captures many products in one CUDA graph and replays the graph. Replays are queued a few tens of
// milliseconds ahead. The card is therefore never idle between launches, and stops soon after a wait is cancelled. A
// batch may also contain memory traffic (copies, fills, empty launches); see [Device.NewMix].
//
// # Launch sequences
//
// A [Sequence] runs segments, each of one product, and records CUDA events between executions. The events give the time
// of each execution. [Device.ReadClock] reads the same clock while the card is idle, between two readings of the host's
// clock, so that executions can be aligned with sensor readings. The card's clock starts when the device is opened. It
// drifts by about a microsecond in ten minutes.
//
// A device runs one batch or sequence at a time. Its clock can be read between runs.
package cuda
