// Package inspect reports what is in a model before any conversion: the bits that toggle between neighbouring
// values, the predicted energy of its linear layers, and the largest saving that any transform could reach.
package inspect
