// Package operand provides operands of products y[M,N] = x[M,K]·w[N,K]ᵀ from patterns and models.
//
// A [Source] names values: a pattern such as "normal(0,0.02) | round(4)", or tensors of a folder or file ("PATH:NAME",
// "PATH:*up_proj.weight", or "PATH:" for all linear layers). A [Set] builds [Product] values from sources. Patterns get
// the shapes of the layers with which they are compared. From a second model "PATH:", the set takes the layers with the
// same names.
//
// Every operand is a [Matrix] that is read on demand. A prediction reads blocks of it ([Matrix.Block]), and a
// measurement reads the whole matrix ([Product.Whole]). Both get the same bytes.
//
// Matrices of files share the files' mapped memory. Reading it faults if a file has been truncated. Methods of this
// package return such faults as errors. Other code that reads a whole matrix must run under [weights.Guard].
package operand
