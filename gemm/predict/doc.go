// Package predict predicts the energy of products without a GPU. It uses a calibration: a model of a GPU that is fitted to
// measurements (package cost).
//
// [Models] compares a model with its converted copy. [Sources] predicts patterns, tensors or all layers of a folder.
// [Conversion] predicts a conversion's saving for a workload, from samples of the stored weights. A [Ratio] combines
// the savings of many layers.
//
// All energies are relative to random normal operands of the same scale. If models are compared, they are relative to
// random operands of the first model's scale. Nothing is measured.
package predict
