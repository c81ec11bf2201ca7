// Package order chooses the order and the signs of an index's labels so that fewer bits toggle between neighbouring
// labels. Neighbours are labels that a card's datapath or memory handles one after the other. The package works on
// numbers alone: matrices with labels along an axis ([Use]), and the distances at which differing bits cost energy
// ([cost.Lag]).
//
// A [Sketch] holds sampled bits of every label, packed into words. A distance is then a popcount. A [Placement] maps
// a path of labels to places. [Toggles] are the remaining toggles; signs are chosen to reduce them.
//
// Trained rows are almost never similar: on real models an order saves no measurable energy (docs/ordering.md). So
// the package stays small.
package order
