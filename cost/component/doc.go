// Package component says which parts of a card draw its power: a model of watts by component, fitted to
// readings of kernels that stress one part each, and what follows from it.
//
// # Components
//
// What a kernel draws is a sum of parts, each an energy times a rate:
//
//   - static: leakage, fans, and all that runs without work; watts
//   - awake: clocks and schedulers of multiprocessors while they have work, whatever it is; watts. Between one
//     execution and the next they have none for as long as an empty launch takes, which is most of the time of a
//     copy of 2 MiB and nothing of a layer
//   - multipliers: joules for each operation, by type, and more of them the more its operands' bits
//     toggle ([cost.Calibration.Toggling])
//   - on-chip: joules for each byte that multiprocessors ask of the L2 cache, and for each that passes
//     the chip on its way from or to memory
//   - HBM: joules for each byte of the memory's stacks
//
// A [Kernel] has operations, bytes and toggling, a time, and the clock at which it took that time.
// [Gemm] derives one from a product's shape.
//
// All parts on the chip follow the clock besides, as voltage does: energies are proportional to clock, awake to
// clock². Static power and HBM do not follow it.
//
// # Bytes of a product
//
// Multiprocessors ask for a tile's rows of both operands; where a cluster of two shares a tile's side it
// asks once. What does not fit half of the L2 cache (its two halves hold their own copies) comes from
// memory: every operand once, and a share of what is asked for again, which the fit finds.
//
// # Fit
//
// [Fit] is non-negative least squares of relative errors over readings' watts. Where the card tells the
// power of its memory, these are readings of HBM alone, with an offset of the sensor's own; without them
// HBM and the way to it cannot be told apart, and all of it is called HBM. Standard errors are those of a
// bootstrap of residuals, together with what another exponent of the clock would change. The model is judged
// by kernels that a fit has not seen: by those of the fit, each left out in turn, where others tell the
// same coefficients, and by those that were held out.
//
// # Clock
//
// The card's clock is the highest at which power is below what the card draws at its cap, and operations
// are below a second limit: an H200 was seen to hold back tensor cores at some 780 TFLOP/s in BF16
// whatever their operands were, at 340 W as well as at 660 ([Model.Limits]).
//
// [Model.Advise] looks for clocks of least energy, unless kernels that it never saw show that the model is too
// far off for that ([Model.Verdict]). Clocks were measured only where the card chose them under its cap; what lies below
// is extrapolated, and is said to be.
//
// Values are safe for concurrent use once they are made.
package component
