// Package operand makes operands of products y[M,N] = x[M,K]·w[N,K]ᵀ from patterns and models.
//
// A [Source] names values: a pattern such as "normal(0,0.02) | round(4)", or tensors of a folder or file
// ("PATH:NAME", "PATH:*up_proj.weight", "PATH:" for all linear layers). A [Set] makes [Product] values of
// sources. Patterns take the shapes of the layers that they are compared with. Of a second model "PATH:",
// the layers with the same names are taken.
//
// Every operand is a [Matrix] that is read on demand. A prediction reads blocks of it
// ([Matrix.Block]); a measurement reads it whole ([Product.Whole]). Both get the same bytes.
//
// Matrices of files share the files' mapped memory. Reading it faults if a file has become shorter. Methods of this
// package return such faults as errors. Other code that reads a whole matrix must run under [weights.Guard].
package operand
