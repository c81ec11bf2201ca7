// Package predict says what products will cost, without a GPU, by a calibration: a model of a GPU that was
// fitted to measurements on one (package cost).
//
// [Models] compares a model with its converted copy, [Sources] predicts whatever a user names: patterns,
// tensors, all layers of a folder. [Conversion] predicts a conversion's saving for a workload from samples
// of the stored weights, as plans and verifications do. A [Ratio] adds up the layers of such a saving.
//
// All energies are relative to random normal operands of the same scale. Nothing is measured.
package predict
