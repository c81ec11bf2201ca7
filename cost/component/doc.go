// Package component models a card's power by component. The model is fitted to readings of kernels that stress one
// component each. The package also advises on clocks.
//
// # Components
//
// A kernel's power is a sum of parts. Each part is an energy times a rate:
//
//   - static: leakage, fans, and everything that runs without work; watts, which grow with the temperature
//   - awake: clocks and schedulers of multiprocessors while they have any work; watts, by the share of multiprocessors
//     with work. Multiprocessors are idle in rests, and for the time of an empty launch of each kernel. The idle time
//     is most of a copy of 2 MiB, and a negligible part of a layer
//   - multipliers: joules for each operation, by type, which grow with the toggling of the operands' bits
//     ([cost.Calibration.Toggling])
//   - on-chip: joules for each byte between multiprocessors and the L2 cache, and for each byte that crosses the
//     chip from or to memory
//   - HBM: joules for each byte of the memory's stacks
//
// A [Kernel] has operations, bytes and toggling, a time, and the clock during this time. [Gemm] derives a kernel from
// a product's shape.
//
// The power of all parts on the chip also grows with the clock, because the voltage grows with the clock: energies
// with clock^Exponent ([Clocks]), and the awake part with clock^(Exponent+1). Static power and HBM power do not
// depend on the clock.
//
// # Bytes of a product
//
// For each tile, multiprocessors read the tile's rows of both operands. Tiles of a cluster share a side and read its
// rows once. Operands that do not fit the L2 cache are read from memory: every operand once, and a fitted share of
// the repeated reads. The card's [Facts] hold the sizes of tiles, clusters and cache.
//
// # Fit
//
// [Model.Fit] is non-negative least squares of relative errors over the readings' watts. If the card reports the
// power of its memory, these readings are for HBM alone, with an offset of the sensor. Otherwise HBM includes the
// path to memory on the chip, because the two cannot be separated. Standard errors come from a bootstrap of residuals
// and from the likely exponents of the clock.
//
// Unseen kernels test the model ([Model.Unseen]). These are the held-out kernels, and the kernels of the fit, each
// left out in turn if other kernels determine the same coefficients. Below the power cap, naive models ([NaiveNames])
// predict the same kernels for comparison. At the cap, power is constant, so clocks are compared.
//
// # Clock
//
// The card runs at the highest clock at which its power is within Drawn and operations are within [Model.Limits].
// Some cards lower the clock of tensor cores at a rate of operations, far below the power cap.
//
// [Model.Advise] finds clocks of least energy, unless the errors on unseen kernels are too large: more than half of
// the best naive model's ([Model.Verdict]), or too large on kernels of the same kind. Clocks were measured only where
// the card chooses them under its cap. Lower clocks are extrapolated, and marked as such.
//
// A Model is safe for concurrent use after its fit.
package component
