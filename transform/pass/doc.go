// Package pass has the passes, one file each, and the contract of a pass ([Pass]).
//
// A lossy pass sees one linear layer at a time ([Layer]): its values, role, workload, budget, cost model and
// calibration statistics. It offers candidates, and compiles the step that was chosen into an operation (package
// program). An exact or compensated pass sees the whole model ([Model]): the layout, the weights, and the
// symmetries that are planned so far.
//
// The data of a step is the pass's own type. Outside its file only the check in package verify decodes it, by a
// type of its own.
package pass
