// Package divergence measures the Kullback–Leibler divergence between a model and the same model with other weights, on tokens. A
// search for a plan weighs the divergence against energy.
//
//	e, err := divergence.New(ctx, d, forward.Stored(m), tokens, divergence.Options{})
//	err = e.PerLayer(ctx, nil, rounded, func(layer string, nats float64) error { ... })
//	nats, loss, interval, err := e.WholeModel(ctx, rounded)
//
// # Measures
//
// The divergence is the mean of KL(model ‖ changed) over all tokens, in nats per token
// ([forward.Decoder.Divergence]). It is at least 0 up to rounding errors, and exactly 0 for the model's own
// weights. It has little noise: a few thousand tokens suffice to compare small changes. The loss, which users of a model see,
// needs far more tokens; [Needed] estimates how many.
//
// # Cost
//
// New is one pass through the model. FromPass takes a pass that was made already, as by
// hessian.CollectAndScore. PerLayer runs, for a layer in block b of B, the blocks b to B-1 and the head. For layers
// of an FFN it runs the block's attention once. All layers together take less than half as many passes as there
// are layers. Each layer reads base's tensors, so a base that computes its tensors should keep them. WholeModel is at most one
// pass. It reuses the first blocks of the call before if their weights are the same.
//
// Memory is three states, [tokens, hidden] in float32, and the memory of a block. In addition the model's
// logits, its states before blocks, and those of the last model that WholeModel ran are kept, each as far as
// [forward.Keep] allows. States and logits that are not kept are computed again for every comparison.
//
// # Determinism
//
// As in package forward, results have the same bits for any number of workers. PerLayer's divergence of a
// layer has the bits of WholeModel's for weights that change this layer alone, on the same tokens.
package divergence
