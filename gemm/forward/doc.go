// Package forward computes what a model makes of tokens, on the CPU in float32: the loss of every
// token, and the inputs of every linear layer. It has no backward pass and generates nothing.
//
// A [Decoder] is a model's arithmetic without its weights. Those come from a [Weights], layer by
// layer, so that a model with other weights is another Weights and not another model:
//
//	d, err := forward.New(model, layout)
//	before, err := d.Run(ctx, forward.Stored(model), tokens, nil)
//	after, err := d.Run(ctx, changed, tokens, nil)
//	c, err := forward.Compare(before, after)
//
// Run is Start, Block for each block and Score. Whoever changes one layer clones the [State] before
// that layer's block and goes on from there.
//
// # Shapes
//
// Hidden states are [tokens, hidden], one sequence after the other. A linear layer's input is
// [tokens, inputs] of a batch: whole sequences, together about 2048 tokens; a routed expert's has
// those tokens alone that are routed to it. Weights are as the checkpoint stores them. Losses are in
// nats. A layer's tensors are in memory together, all of its experts among them.
//
// # Arithmetic
//
// Linear layers are multiplied by a [Products], the CPU's sgemm unless another is given. Everything
// else is float32, rounded after every operation, with sums over channels, keys and the vocabulary
// in float64 and in a fixed order. With the CPU's products the result has the same bits for any
// number of workers and any batch that a sequence is in. Only the angles of rotary positions, the
// slopes of ALiBi, the GELU that is no tanh, and the logarithm of the loss come from package math,
// whose last digit may depend on the machine.
//
// # Families
//
// A family's arithmetic is an entry of the table in families.go, whose columns are explained in
// family.go; one block runs them all. A block is steps, a step branches that read the same hidden
// states, a branch a norm and the parts behind it: attention (attention.go, latent.go), neurons
// (ffn.go) or routed experts (experts.go). What config.json asks for and this package does not compute
// is an error of [New]. Of models that also see or hear it computes what they make of text, and of a
// model beside which an adapter lies the model without.
package forward
