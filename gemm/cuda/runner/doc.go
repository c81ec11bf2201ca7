// Package runner runs whole decoder models on an NVIDIA GPU: losses and divergences of tokens, and prefill and decode
// steps as a server takes them.
//
//	model, err := runner.New(ctx, device, decoder, runner.Stored(checkpoint, layout), runner.Options{})
//	defer model.Close()
//	pass, err := model.Pass(ctx, tokens, nil)
//	fmt.Println(pass.Scores.Loss())
//
// Linear layers are cuBLASLt's. Everything else is kernels of the project's own (folder kernels), which NVRTC compiles
// for the card when a model is made. Without NVRTC, [New] fails with [cuda.ErrNoCompiler].
//
// # Arithmetic
//
// Options.Exact chooses between two:
//
//   - exact: activations are float32. A float32 activation is the sum of three BF16 numbers, so a product with BF16
//     weights is three products on tensor cores. Other weights are multiplied in float32. The loss is that of package
//     forward to about 1e-6 nats; sums are in another order.
//   - as served: activations have the type of the model's weights (BF16, FP16 or FP32), as in the usual runtimes. A
//     linear layer accumulates in float32, and its result is added to the residual stream before it is rounded.
//
// # Memory
//
// Weights stay on the card if all of them fit. Otherwise a pass loads them block by block, once for all tokens.
package runner
