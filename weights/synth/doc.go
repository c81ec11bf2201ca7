// Package synth writes model folders of any size and architecture, for tests and benchmarks.
//
// The weights are random, but look like trained ones. A matrix is normal with standard deviation 1/√(inputs), an embedding with
// 0.02. In addition,
//
// - every output channel has its own log-normal factor, with a standard deviation of 0.3 of the logarithm,
// - every input channel has such a factor, with 0.15,
//   - and one input channel in 256 (at least one) is 4 to 12 times as large.
//
// A convolution's kernel is a matrix of outputs × all other dimensions. Embeddings are tables that a model looks up or adds
// by position: tokens, positions, token types, the class token of a vision model.
//
// Norm weights are normal around 1 with standard deviation 0.15, within 0.5 to 1.5. In norms that add 1 themselves (Gemma's),
// they are normal around 0. Biases, including a router's, are normal around 0 with standard deviation 0.02. Matrices of an
// 8-bit DType have standard deviation 1 (FP8) or 24 (I8), as the codes of a quantised checkpoint have, and no scales.
// Options.Format makes a quantised checkpoint with scales.
//
// Each row has its own random stream, keyed by the seed, the tensor's name and the row. So the bytes do not depend on the
// number of workers. They may differ between processor architectures and between releases, because logarithms may be rounded
// differently.
package synth
