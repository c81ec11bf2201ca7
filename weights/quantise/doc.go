// Package quantise defines the layouts of new quantised checkpoints.
//
// A [Format] gives the tensors of a linear layer with N outputs and K inputs, and the configs that runtimes need to load them.
// [TargetsOf] returns the layers of a model that are quantised: the linear layers within its blocks, except routers. Package
// quant reads and writes the values.
package quantise
