// Package decoder describes what a decoder-only language model computes, from its config.json and the names of
// its tensors. A [Decoder] is data: it holds no weights and computes nothing. Package forward runs one on the
// CPU, package gemm/cuda/runner on a GPU.
//
// A block is a list of steps, h += Σ branches(h). A branch is a norm of the residual stream h with the parts that
// read it: attention, a feed-forward network, or routed experts. Linear layers are y[M,out] = x[M,in]·wᵀ + b.
//
// A family's arithmetic is an entry of the table in families.go; family.go explains its columns. If config.json
// asks for something that no entry describes, [New] fails. Of multimodal models only the language model is
// described, and adapters are left out.
package decoder
