// Package reference computes a model's outputs in float64, one position after the other, as the models'
// papers and published code say. It is slow and obvious, and shares nothing with package forward but
// the reading of files: what the catalogue of architectures allows, and what the fast forward pass
// computes, is held against it in tests.
//
// An architecture is a function in a file of its own, found by config.json's model_type; what several
// share is in model.go (config.json and tensors), arithmetic.go and rotary.go, and the relatives of Llama
// are its decoder, in llama.go, with other fields.
package reference
