// Package program carries out the steps of a plan on one weight at a time. It loads rows of the source, applies the
// symmetries of the exact passes, and runs the operations of the other passes. It knows no pass by name: the [Rule]
// of a pass decodes its steps, and returns an [Operation] for each step.
//
// # Joint choice
//
// Most operations rewrite a few rows in place. A joint choice selects the values of a whole layer together, because
// the layer's Hessian spreads the rounding error of one column over other columns. A program with a joint choice must
// be prepared before its rows are read ([Program.Prepare]), and released afterwards ([Program.Release]).
//
// # Codes
//
// The program of a quantised weight chooses codes and scales ([Recoding]), where other programs choose values. Its
// rows are the values of the new codes. [Program.Recoded] returns the stored codes and scales, and
// [Program.RunOperand] the operand of a GPU's tensor cores. Without error feedback and without an energy term, rows
// are computed when they are needed.
//
// # Values
//
// NaN and infinity keep their bits. They may be moved, but are not used in computations.
package program
