// Package forward runs a model over tokens on the CPU, in float32. It computes the loss of every token, and passes the
// inputs of every linear layer to an [Observer]. It has no backward pass and generates no tokens.
//
// A [Decoder] contains the model's description from package decoder, but no weights. A [Weights] provides the weights
// layer by layer. A model with different weights is therefore the same Decoder with a different Weights:
//
//	d, err := forward.New(model, layout)
//	before, err := d.Run(ctx, forward.Stored(model), tokens, nil)
//	after, err := d.Run(ctx, changed, tokens, nil)
//	c, err := forward.Compare(before, after)
//
// Run is Start, Block for each block, and Score. A caller that changes one layer clones the [State] before this layer's
// block and continues from the clone. Pass is Run that also keeps results for later comparisons: the state after the
// last block, the losses, the logits and the states before blocks.
//
// # Shapes
//
// Hidden states are [tokens, hidden], with the sequences in order. A linear layer's input is [tokens, inputs] of a
// batch: whole sequences with about 2048 tokens in all. A routed expert's input contains only the tokens that are
// routed to it. Weights are laid out as in the checkpoint. Losses are in nats. All tensors of a layer are in memory at
// the same time.
//
// # Arithmetic
//
// A [Products] multiplies by the weights of linear layers. The default is package sgemm on the CPU. Package vector has
// exponentials and activations. All other arithmetic is in float32, rounded after every operation. Sums over channels,
// keys and the vocabulary are in float64 and in a fixed order. With the CPU's products, the result has the same bits
// for any number of workers, for any batch that contains a sequence, and with or without vector kernels. The angles of
// rotary positions, the slopes of ALiBi, the exact GELU and the logarithm of the loss come from package math. Their
// last digit may depend on the machine.
//
// # Parts
//
// Block loads each step of a block (branch.go, part.go): attention (attention.go, heads.go, latent.go), a feed-forward
// network (ffn.go) or routed experts (experts.go). Every load function gets the tensors that a description names from a
// Weights. Its result has a method apply that computes a batch.
package forward
