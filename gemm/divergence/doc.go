// Package judge says how far a model with other weights departs from the model, on tokens. It
// decides nothing: who searches for a plan asks it, and weighs the answer against energy.
//
//	e, err := divergence.New(ctx, d, forward.Stored(m), tokens, divergence.Options{})
//	err = e.PerLayer(ctx, nil, rounded, func(layer string, nats float64) error { ... })
//	divergence, loss, interval, err := e.WholeModel(ctx, rounded)
//
// # Measures
//
// The divergence is the mean of KL(model ‖ changed) over all tokens, in nats per token
// ([forward.Decoder.Divergence]). It is never below 0 but for rounding, exactly 0 for the model's
// own weights, and has little noise: small changes can be told apart on a few thousand tokens. The
// loss is what users see of a model, and needs far more of them; [Needed] says how many.
//
// # Cost
//
// New is a pass through the model. PerLayer takes, for a layer in block b of B, the blocks b to B-1 and
// the head twice, for the model's logits are computed again: of all layers together that is about
// half as many passes as there are layers, and their heads. Each of these passes asks for base's
// tensors anew: a base that computes them should keep them. WholeModel is a pass and two more heads,
// and asks for the tensors of the head twice.
//
// Memory is three states, [tokens, hidden] in float32, and what a block takes.
//
// # Determinism
//
// As in package forward: the same bits for any number of workers, and a layer alone has the same
// bits in PerLayer as in WholeModel.
package divergence
