// Package cost counts the bits that toggle in a tensor, and predicts their energy on a GPU.
//
// Throughout, y[M,N] = x[M,K]·w[N,K]ᵀ: M tokens, N outputs, K inputs, and w is the weight tensor. In storage
// order a weight matrix has rows (all dimensions but the last) and columns (the last). Linear layers store
// one output per row, Conv1D layers store the transpose.
//
// # Activity
//
// [Measure] counts bits exactly, over every element of a tensor: bits that differ between neighbouring rows
// in the same column, and between neighbours in memory, each by bit field (sign, exponent, mantissa); bits
// set; zeros, their runs and their borders; NaN, infinities and subnormal numbers. Counts are integers, so
// they do not depend on the number of workers.
//
// Every type with a weights.Format can be counted. An I8 is two's complement: its top bit counts as the sign,
// the other seven as mantissa, and it has no exponent.
//
// # Speed
//
// On amd64 with AVX-512 (F, BW and VPOPCNTDQ) a kernel counts, at half to four fifths of the speed of a plain
// copy. Elsewhere plain Go gives the same counts, several times slower. The build tag purego omits the kernel,
// and GODEBUG=cpu.avx512f=off disables it. The program in _gen generates the kernel.
//
// # Patterns
//
// Package pattern has a one-line language for the bits of a matrix, such as normal(0,0.02) | round(4). It names
// the operands of measurements and predictions.
//
// # Energy
//
// [Calibration.Predict] predicts the energy of a product, [Calibration.Energy] that of a layer's weights with
// random inputs. A prediction has three steps:
//
//   - [Calibration.Observe] samples [Features]: small tiles of both operands at evenly spread places. The rows of
//     one operand are held while those of the other stream past. Toggles are counted in that order, in
//     operands, products, sums and accumulators, and in short stretches of memory. Nothing else of a matrix
//     is read.
//   - A [Model] turns features into the activity, which is 1 for random normal operands of the same scale. The
//     activity is a sum of the features relative to theirs, with coefficients that are not negative: no wire
//     saves energy by toggling. There is one model for each type of arithmetic, with weights on chip or from
//     memory.
//   - The card's response turns the activity into energy, time and clock. Power is static, or proportional to
//     the activity and to a power of the clock ([PowerLaw]). A card at its power cap runs a quieter product at
//     a faster clock; the clock comes from the [Series] of the nearest shape. The energy of converting and
//     writing results does not depend on weights, so savings are reduced by its share, which grows with fewer
//     inputs K.
//
// Energy and time are relative to those of random operands. Joules, seconds, watts and megahertz follow from
// the nearest series' baseline, in proportion to the operations, or to the weights' elements if these come
// from memory.
//
// Intervals are 95 %, for one reading of another card of the kind. They hold the model's error for classes of
// families of patterns that its fit had not seen, which grows with the predicted change, and the sampling error. Every warning, such as a shape far from the
// measured ones, widens them.
//
// Roles are those in a linear layer's call: in today's runtimes weights are the stationary operand, which is the
// A operand of cuBLAS. The library chooses which operand really streams, by type ([Model].Swapped) and by shape:
// with far more tokens than outputs the tokens stream, whatever the role.
//
// [Calibration.Lags] tells a pass which neighbours along an axis cost energy if they differ.
//
// # Calibrations
//
// Everything that is known about a card is data. A [Calibration] is a JSON file with the card's [Facts], the
// measured points, their features, and the models of [Calibration.Fit]. [FindCalibration] returns a built-in
// one, from the folder calibrations; [ReadCalibration] reads a user's. A field that is missing or out of
// range is an error that names the field. [Calibration.LeaveOut] tests a model on points that its fit did not
// see, [Calibration.LeaveOutCard] on cards that it did not see, and [Rivals] are simpler models to compare with.
//
// # Memory and concurrency
//
// Tensor data is only read and never kept. Functions and values are safe for concurrent use, except that one
// goroutine at a time calls an [Operand], and a Calibration may not be fitted while it predicts.
package cost
