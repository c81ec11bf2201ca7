// Package pass has the passes, one file each, and the contract of a pass ([Pass]).
//
// A lossy pass works on one linear layer at a time ([Layer]). It gets the layer's values, role, workload, budget,
// cost model and calibration statistics. It offers candidates, and compiles the chosen step into an operation
// (package program). An exact or compensated pass works on the whole model ([Model]): the layout, the weights, and
// the symmetries planned so far.
//
// The data of a step has the pass's own type. Outside the pass's file, only the check in package verify decodes the
// data, with its own type.
package pass
