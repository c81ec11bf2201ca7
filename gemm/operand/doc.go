// Package operand turns what a user names into operands of products y[M,N] = x[M,K]·w[N,K]ᵀ.
//
// A [Source] names values: a pattern such as "normal(0,0.02) | round(4)", or tensors of a folder or file
// ("PATH:NAME", "PATH:*up_proj.weight", "PATH:" for all linear layers). A [Set] makes [Layer] values and
// [Product] values of sources: patterns take the shapes of the layers that they are compared with, and
// another model's source takes the layers of the same names.
//
// Every operand is a [Matrix] that is read on demand. A prediction reads blocks of it
// ([Matrix.Block]); a measurement takes it whole ([Product.Whole]). Both see the same bytes.
//
// Matrices of files share the files' mapped memory, which faults where a file shrinks. Methods of this
// package turn faults into errors; whatever else reads a whole matrix must run under [weights.Guard].
package operand
