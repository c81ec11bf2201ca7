// Package runner runs whole decoder models on an NVIDIA GPU. It computes losses, divergences and calibration statistics
// for tokens. It also replays prefill and decode steps like those of a server.
//
//	model, err := runner.New(ctx, device, decoder, runner.Stored(checkpoint, layout), runner.Options{})
//	defer model.Close()
//	pass, err := model.Pass(ctx, tokens, nil)
//	fmt.Println(pass.Scores.Loss())
//
// cuBLASLt computes the linear layers. All other operations are kernels of the folder kernels, which NVRTC compiles for
// the card when a model is loaded. Without NVRTC, [New] returns a [cuda.ErrNoCompiler].
//
// # Arithmetic
//
// Options.Exact selects one of two arithmetics:
//
//   - exact: activations are float32. A float32 activation is the sum of three BF16 numbers, so a product with BF16
//     weights is three products on tensor cores. Other weights are multiplied in float32. The loss agrees with
//     that of package forward to about 1e-6 nats per token; sums are in another order.
//   - as served: activations have the type of the model's weights (BF16, FP16 or FP32), as in the usual runtimes. A
//     linear layer accumulates in float32, and its result is added to the residual stream before it is rounded.
//
// # Memory
//
// Weights stay on the card if all of them fit. Otherwise a pass loads the blocks in turn, each once for all tokens.
package runner
