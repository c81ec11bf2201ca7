// Package forward runs a model over tokens, on the CPU in float32. It computes the loss of every token, and
// shows the inputs of every linear layer to an [Observer]. It has no backward pass and generates no tokens.
//
// A [Decoder] has a model's description, which package decoder makes, and no weights. A [Weights] provides the
// weights layer by layer, so a model with other weights is another Weights and not another model:
//
//	d, err := forward.New(model, layout)
//	before, err := d.Run(ctx, forward.Stored(model), tokens, nil)
//	after, err := d.Run(ctx, changed, tokens, nil)
//	c, err := forward.Compare(before, after)
//
// Run is Start, Block for each block, and Score. A caller that changes one layer clones the [State] before this layer's block and
// continues from the clone. Pass is Run and also keeps results for later comparisons: the state after the last block, the losses,
// the logits and the states before blocks.
//
// # Shapes
//
// Hidden states are [tokens, hidden], one sequence after the other. A linear layer's input is
// [tokens, inputs] of a batch: whole sequences with about 2048 tokens together. A routed expert's input has
// only the tokens that are routed to it. Weights are laid out as in the checkpoint. Losses are in nats. All
// tensors of a layer are in memory together, including all of its experts.
//
// # Arithmetic
//
// A [Products] multiplies by the linear layers: package sgemm on the CPU, unless another one is set. Package vector
// has exponentials and activations. All other arithmetic is float32, rounded after every operation. Sums over
// channels, keys and the vocabulary are in float64 and in a fixed order. With the CPU's products the result has the
// same bits for any number of workers, for any batch that contains a sequence, and with or without vector kernels.
// Only the angles of rotary positions, the slopes of ALiBi, the exact GELU and the logarithm of the loss come from
// package math, whose last digit may depend on the machine.
//
// # Parts
//
// Block loads each step of a block (branch.go, part.go): attention (attention.go, heads.go, latent.go), neurons
// (ffn.go) or routed experts (experts.go). Every load function asks a Weights for the tensors that a description
// names. The result has an apply method that computes a batch.
package forward
