// Package order chooses the order and the signs of an index's labels so that fewer bits toggle between labels that a card's
// datapath or memory handles one after the other. It knows numbers only: matrices along whose axes the labels run ([Use]) and the
// distances at which differing bits cost energy ([cost.Lag]).
//
// A [Sketch] holds sampled bits of every label, packed, so that a distance is a popcount. A [Placement] lays a path
// of labels out in places. [Toggles] are the toggles that remain; signs are chosen by them.
//
// Trained rows are almost never similar: on real models an order saves no energy that can be measured (docs/ordering.md), so the
// package stays small.
package order
