// Package bench holds benchmarks, recorded results, and the tests that compare pages and models with them.
//
// Benchmarks of converting, reordering and inspecting run on any machine:
//
//	go test ./bench -run '^$' -bench . -benchtime 3x -timeout 30m
//
// Convert and Reorder write folders of up to 4 GB in total to the temporary folder and remove
// them.
//
// The measurements in results/h200 were made with lowtoggle measure and verify --gpu; docs/measured.md
// is generated from them and says how to repeat them. They take weights of known patterns
// (cost/pattern) and inputs of a model's layers (activations.py). pytorch.py runs the same products
// through PyTorch, loss.py computes the losses of converted models.
package bench
