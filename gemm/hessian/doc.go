// Package hessian keeps what a model's linear layers are fed with: the second moments and the range
// of every layer's inputs. They are on disk, because those of all layers of a large model together
// are larger than memory.
//
//	s, err := hessian.Collect(ctx, d, forward.Stored(model), tokens, dir, hessian.Options{Key: key})
//	h, err := s.Read(ctx, "model.layers.0.mlp.down_proj.weight")
//
// For inputs X[tokens, K] the moments are H = XᵀX/tokens, [K, K]: changing a layer's weights W[N, K]
// by E[N, K] changes its outputs by tr(E·H·Eᵀ), summed over outputs, in the mean over tokens. Of a routed
// expert only the tokens count that it is given.
//
// # Arithmetic
//
// A batch's XᵀX is float32 (package sgemm); batches are added up in float64, in the order of the
// tokens, and the sum over all of them is rounded to float32 once. The same tokens and weights give
// the same bytes with any number of workers, in one run or in several.
//
// # The folder
//
// Layers that share an input share a file, NAME.moments, after the first of them: a line of JSON
// that says what it is, the upper triangle of H by rows, float32, little-endian, and a CRC-32C of
// all that. It takes 2K² bytes. index.json, which has a CRC-32C, too, lists all files with their
// layers and ranges, and is written last.
//
// A folder with an index of the same [Options.Key] is taken as it is. Without an index it was broken
// off: files of the same key that are whole are taken, and the rest is computed. What belongs to
// another key is removed. Two runs at a time must not write to one folder.
//
// # Memory
//
// While it collects: that of the forward pass, and for the two inputs of half a block 4K² bytes each;
// of a block with routed experts for both inputs of each expert, since any token may go to any.
package hessian
