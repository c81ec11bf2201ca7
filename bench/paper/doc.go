// Package paper holds the experiments of "Input-Dependent Power Usage in GPUs" (Gregersen, Patel,
// Choukse; SC'24 workshops) as data: what is multiplied at every point of its Figures 3 to 6, in
// which setups, and what its takeaways T1 to T15 claim.
//
// [Experiments] is the table. [Work] makes of it what bench/experiment measures in one of the [Setups];
// [Results] reads the measurements, [Judge] holds the takeaways against them, [Align] computes the bits
// of Figure 8, [Figures] draws, and [Page] writes it all down. docs/reproduce.md is the page of
// bench/results/h200/reproduce:
//
//	go test ./bench/paper -run Page -update
//
// The paper multiplies A·B and says where B is transposed. Here a product is x[M,K]·w[N,K]ᵀ: x is A,
// and w is B transposed. "B transposed" means that both operands have the pattern as it is, and "B not
// transposed" that w is the transpose of a matrix [K,N] with the pattern. That is how the text reads; the authors'
// published program stores matrices by columns, so that its rows are what are columns here.
package paper
