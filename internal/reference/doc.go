// Package reference is the float64 reference model: it computes a model's outputs one position after the other,
// following the models' papers and published code. It is slow and simple, and shares only the reading of files
// with package forward. Tests compare the catalogue of architectures and the fast forward pass with it.
//
// Each architecture is a function in its own file; config.json's model_type selects it. Shared code is in model.go
// (config.json and tensors), arithmetic.go and rotary.go. Relatives of Llama use its decoder, in llama.go, with
// other fields.
package reference
