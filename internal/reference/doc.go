// Package reference is the float64 reference model: it computes a model's outputs one position after the other,
// following the models' papers and published code. It is slow and simple, and shares only the reading of files with
// package forward. Tests use it to check the catalogue of architectures and the fast forward pass.
//
// Each architecture is a function in its own file, selected by config.json's model_type. Shared code is in model.go
// (config.json and tensors), arithmetic.go and rotary.go. Relatives of Llama use the decoder in llama.go with other
// fields.
package reference
