// Package component models a card's power by component. It fits the model to readings of kernels that stress one
// component each, and advises on clocks.
//
// # Components
//
// A kernel's power is a sum of parts. Each is an energy times a rate:
//
//   - static: leakage, fans, and everything that runs without work; watts, which grow with the temperature
//   - awake: clocks and schedulers of multiprocessors while they have any work; watts, by the share of multiprocessors
//     with work. Multiprocessors are idle in rests, and for the time of an empty launch of each kernel. That is most of
//     a copy of 2 MiB, and a negligible part of a layer
//   - multipliers: joules for each operation, by type, which grow with the toggling of the operands' bits
//     ([cost.Calibration.Toggling])
//   - on-chip: joules for each byte between multiprocessors and the L2 cache, and for each byte that crosses the
//     chip from or to memory
//   - HBM: joules for each byte of the memory's stacks
//
// A [Kernel] has operations, bytes and toggling, a time, and the clock of that time. [Gemm] derives one from a
// product's shape.
//
// The power of all parts on the chip also grows with the clock, because the voltage does: energies with
// clock^Exponent ([Clocks]), the awake part with one power more. Static power and HBM do not follow the clock.
//
// # Bytes of a product
//
// For each tile multiprocessors read the tile's rows of both operands. Tiles of a cluster share a side and read
// its rows once. Operands that do not fit the L2 cache come from memory: every operand once, and a share of
// the repeated reads, which the fit finds. The card's [Facts] hold the sizes of tiles, clusters and cache.
//
// # Fit
//
// [Model.Fit] is non-negative least squares of relative errors over the readings' watts. If the card reports the
// power of its memory, these are readings of HBM alone, with an offset of the sensor. Otherwise HBM and the way
// to it cannot be separated, and HBM includes both. Standard errors come from a bootstrap of residuals and
// from the likely exponents of the clock.
//
// Unseen kernels test the model ([Model.Unseen]): the held-out ones, and those of the fit, each left out in turn if
// other kernels determine the same coefficients. Below the power cap they are also predicted by naive models
// ([NaiveNames]); at the cap, where power is constant, their clocks are compared.
//
// # Clock
//
// The card runs at the highest clock at which its power is within Drawn at the cap, and operations are within
// [Model.Limits]: some cards lower the clock of tensor cores at a rate of operations, far below the power cap.
//
// [Model.Advise] looks for clocks of least energy, unless the errors on unseen kernels are too large: more than half
// of the best naive model's ([Model.Verdict]), or too large on kernels of the same kind. Clocks are measured only where the card chooses them under its cap. Lower clocks are
// extrapolated, and marked so.
//
// A Model is safe for concurrent use after its fit.
package component
