// Package cost counts the bits that toggle in a tensor, and predicts their energy on a GPU.
//
// In this package, y[M,N] = x[M,K]·w[N,K]ᵀ: M tokens, N outputs, K inputs, and w is the weight tensor. In storage
// order, a weight matrix has rows (all dimensions but the last) and columns (the last dimension). Linear layers store
// one output per row. Conv1D layers store the transpose.
//
// # Activity
//
// [Measure] counts bits exactly, over every element of a tensor. It counts bits that differ between neighbouring rows
// in the same column, and between neighbours in memory, each by bit field (sign, exponent, mantissa). It also counts
// set bits; zeros, their runs and their borders; NaN, infinities and subnormal numbers. Counts are integers, so they
// do not depend on the number of workers.
//
// Every type with a weights.Format can be counted. An I8 is in two's complement: its top bit counts as the sign and
// the other seven bits as mantissa. It has no exponent.
//
// # Speed
//
// On amd64 with AVX-512 (F, BW and VPOPCNTDQ), a kernel counts at half to four fifths of the speed of a plain copy.
// On other machines plain Go gives the same counts, several times slower. The build tag purego omits the kernel, and
// GODEBUG=cpu.avx512f=off disables it. The program in _gen generates the kernel.
//
// # Patterns
//
// Package pattern has a one-line language for the bits of a matrix, such as normal(0,0.02) | round(4). Measurements
// and predictions use patterns as operands.
//
// # Energy
//
// [Calibration.Predict] predicts the energy of a product. [Calibration.Energy] predicts the energy of a layer's weights with
// random inputs. A prediction has three steps:
//
//   - [Calibration.Observe] samples [Features]: small tiles of both operands at evenly spread places. The rows of
//     one operand are held while those of the other stream past. Toggles are counted in that order, in
//     operands, products, sums and accumulators, and in short stretches of memory. The rest of a matrix is not read.
//   - A [Model] turns features into the activity, which is 1 for random normal operands of the same scale. The
//     activity is a sum of the features relative to those of random operands. Coefficients are not negative, because
//     no wire saves energy by toggling. There is one model for each type of arithmetic, with weights on chip or from
//     memory.
//   - The card's response turns the activity into energy, time and clock. Power is static, or proportional to
//     the activity and to a power of the clock ([PowerLaw]). At its power cap, a card runs a product with less activity
//     at a higher clock; the clock comes from the [Series] of the nearest shape. The energy of converting and
//     writing results does not depend on weights. Savings are reduced by the share of this energy, which grows as
//     the number of inputs K falls.
//
// Energy and time are relative to those of random operands. Joules, seconds, watts and megahertz are derived from the
// nearest series' baseline. They are proportional to the number of operations or, if weights come from memory, to the
// number of weights.
//
// Intervals are 95 %, for one reading of another card of the kind. They include the model's error on classes of
// families of patterns that its fit did not use, and the sampling error. The model's error grows with the predicted
// change. Every warning, such as a shape far from the measured ones, widens the interval.
//
// Roles are roles in a linear layer's call. In today's runtimes weights are the stationary operand, which is the A
// operand of cuBLAS. The library chooses which operand streams in the multipliers, by type ([Model].Swapped) and by
// shape. With far more tokens than outputs, the tokens stream in either role.
//
// [Calibration.Lags] returns the distances along an axis at which different neighbours cost energy.
//
// # Calibrations
//
// All knowledge about a card is data. A [Calibration] is a JSON file with the card's [Facts], the measured points,
// their features, and the models of [Calibration.Fit]. [FindCalibration] returns a built-in calibration from the
// folder calibrations; [ReadCalibration] reads a user's file. If a field is missing or out of range, the error names
// the field. [Calibration.LeaveOut] tests a model on points that its fit did not use, and [Calibration.LeaveOutCard]
// on other cards. [Rivals] are simpler models for comparison.
//
// # Memory and concurrency
//
// Tensor data is only read and never kept. Functions and values are safe for concurrent use, with two exceptions:
// only one goroutine at a time calls an [Operand], and a Calibration may not be fitted while it predicts.
package cost
