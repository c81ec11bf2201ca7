// Package hessian collects calibration statistics of a model's linear layers and keeps them on disk: the
// Hessian and the range of every layer's inputs. The Hessians of all layers of a large model are larger
// than memory.
//
//	s, err := hessian.Collect(ctx, d, forward.Stored(model), tokens, dir, hessian.Options{Key: key})
//	h, err := s.Read(ctx, "model.layers.0.mlp.down_proj.weight")
//
// For inputs X[tokens, K] the Hessian is H = XᵀX/tokens, [K, K], the second moment of the inputs. Changing
// a layer's weights W[N, K] by E[N, K] adds noise of power tr(E·H·Eᵀ) to its outputs: summed over outputs,
// mean over tokens. For a routed expert only the tokens count that its router sends to it.
//
// # Arithmetic
//
// The product XᵀX of a batch is float32 (package sgemm). Batches are added in float64, in the order of the
// tokens, and the total is rounded to float32 once. The same tokens and weights give the same bytes with
// any number of workers, in one run or in several.
//
// # The folder
//
// Layers that share an input share a file NAME.moments, named after the first of them. It holds a line of
// JSON, the upper triangle of H by rows (float32, little-endian) and a CRC-32C of both, about 2K² bytes.
// index.json lists all files with their layers and ranges. It has a CRC-32C, too, and is written last.
//
// A folder whose index has the same [Options.Key] is used as it is. A folder without an index was
// interrupted: its complete files of the same key are used, and the rest is computed. Files of another
// key are removed. While a process collects, it locks the file named lock; other processes wait for it.
//
// # Memory
//
// Collecting takes the memory of the forward pass and 4K² bytes for each input of half a block. In a
// block with routed experts, the inputs of every expert take 4K² bytes, because any token may go to any expert.
package hessian
