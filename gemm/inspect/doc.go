// Package inspect reports on a model before any conversion: the bits that toggle between neighbouring values, the
// predicted energy of its linear layers, and an upper bound on the saving of any conversion.
package inspect
