// Package cuda multiplies on an NVIDIA GPU, through libraries found at run time.
//
// The driver (libcuda) and cuBLASLt (of CUDA 12 or 13) are opened without cgo when [Open] is
// called; building needs neither, on any platform. Where they or a GPU are missing, the error is
// an [ErrNoGPU] that names what was looked for and where. Only Linux on amd64 and arm64 has an
// implementation.
//
// A [Device] owns a CUDA context and one operating-system thread, on which every call is made.
// Closing it gives back the context and all memory, whatever happened before.
//
// # Operand slots
//
// cuBLASLt is column-major. A row-major x[M,K] is, column-major, K×M, so both operands lie along K
// and every product is the "TN" form D = Aᵀ·B that all types support:
//
//	stationary  A = w, B = x:  D is N×M column-major, y[M,N] row-major
//	streaming   A = x, B = w:  D is M×N column-major, yᵀ row-major, transposed when read back
//
// FP8 and INT8 need dimensions that are multiples of 16: operands are padded with zeros, the
// padding is cut off again, and [Kernel] records the shape that ran. FP8 uses unit scales and the
// accumulation that promotes partial sums (not "fast"), as PyTorch does unless asked.
//
// # Batches
//
// A [Batch] captures many products into one graph and replays it, always a few tens of
// milliseconds ahead of the card: launches never leave it idle, and a cancelled wait does not
// leave it busy for long. Traffic (copies, fills, mere launches) may stand beside the products or
// alone: see [Device.NewMix].
//
// # Trains
//
// A [Sequence] runs segments of one product each, and marks moments between executions by events, so that
// one knows afterwards which execution ran when. [Device.ReadClock] reads the same clock while the
// card is idle, between two moments of the host's: so stamps can be placed beside what sensors said.
// The card's clock counts from when the device was opened, and times of it that lie ten minutes apart
// are still good to about a microsecond.
//
// One batch or sequence runs at a time on a device, and the clock is read between them.
package cuda
