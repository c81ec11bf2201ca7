// Package synth writes model folders of any size and architecture, for tests and benchmarks.
//
// The weights are random, but look like trained ones. A matrix is normal with standard deviation 1/√(inputs), an embedding with
// 0.02. In addition,
//
//   - every output channel has its own factor, log-normal with 0.3 in the logarithm,
//   - every input channel too, with 0.15,
//   - and one input channel in 256 (at least one) is 4 to 12 times as large.
//
// A convolution's kernel counts as a matrix of outputs × everything else. Embeddings are tables that a model looks up or adds by
// position: tokens, positions, token types, the class token of a vision model.
//
// Norm weights are normal around 1 (0.15, kept between 0.5 and 1.5), or around 0 in norms that add
// the 1 themselves (Gemma's); biases around 0 (0.02), including a router's. 8-bit matrices
// have standard deviation 1 (FP8) or 24 (I8), as the codes of a quantised checkpoint do; no scales are
// written. A quantised checkpoint with its scales comes from Options.Format.
//
// Each row has its own random stream, keyed by the seed, the tensor's name and the row. So the bytes do not depend on the number
// of workers. They may differ between processor architectures and releases, which round logarithms differently.
package synth
