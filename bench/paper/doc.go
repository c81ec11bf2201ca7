// Package paper holds the experiments of "Input-Dependent Power Usage in GPUs" (Gregersen, Patel,
// Choukse; SC'24 workshops) as data: the operands of every point of its Figures 3 to 6, the setups, and its
// takeaways T1 to T15.
//
// [Job] lists the points that bench/experiment measures in one of the [Setups]. [Results] reads the measurements,
// [Assess] compares the takeaways with them, [Align] computes the bit alignment of Figure 8, [Figures] draws the
// figures and [Page] writes the page. docs/reproduce.md is the page of bench/results/h200/reproduce, and
// docs/takeaways.md its summary:
//
//	go test ./bench/paper -run Page -update
//
// The paper multiplies A·B and says where B is transposed. Here a product is x[M,K]·w[N,K]ᵀ: x is A, and w is B
// transposed. In an experiment with "B transposed", both x and w have the pattern. With "B not transposed", w is
// the transpose of a matrix [K,N] with the pattern. This follows the paper's text. The authors' published program
// stores matrices by columns, so its rows are columns here.
package paper
