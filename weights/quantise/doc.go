// Package quantise lays out new quantised checkpoints.
//
// A [Format] says which tensors a linear layer of N outputs and K inputs becomes, and which configs a folder of such
// tensors needs so that runtimes load it. [TargetsOf] says which layers of a model are quantised: those within its blocks,
// except routers. Package quant reads and writes the values.
package quantise
