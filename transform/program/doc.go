// Package program carries out the steps of a plan on one weight at a time. It loads rows of the source, applies the
// symmetries of the exact passes to them, and runs the operations of the other passes. It knows no pass by name: the
// [Rule] of a pass decodes its steps, and an [Operation] is what a step does.
//
// # Joint choice
//
// Most operations rewrite a few rows in place. Some choose the values of a whole layer together, because the layer's
// Hessian spreads the rounding error of one column over others. Such a program must be prepared before its rows are
// read ([Program.Prepare]) and released afterwards ([Program.Release]).
//
// # Codes
//
// The program of a quantised weight chooses codes and scales ([Recoding]) where other programs choose values. Its rows are the
// values that the new codes stand for; what is stored comes from [Program.Recoded], and what a GPU multiplies by from
// [Program.RunOperand]. Without the layer's inputs and without prices, rows are computed when they are asked for.
//
// # Values
//
// NaN and infinity keep their bits. They may be moved, but nothing computes with them.
package program
