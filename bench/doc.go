// Package bench holds benchmarks, recorded results, and the tests that compare pages and models with them.
//
// Benchmarks of converting, reordering and inspecting run on any machine:
//
//	go test ./bench -run '^$' -bench . -benchtime 3x -timeout 30m
//
// The benchmarks Convert and Reorder write up to 4 GB to the temporary folder and remove it again.
//
// The measurements in results/h200 were made with lowtoggle measure and verify --gpu. docs/measured.md is generated from them
// and says how to repeat them. The weights are patterns (cost/pattern) or layers of a model. Scripts in Python make the rest:
// activations.py records the layers' inputs; pytorch.py runs the measured products through PyTorch; loss.py computes the
// losses of converted models; dequantise.py computes the values of quantised weights for the tests of package quant;
// quantised.py computes the losses of models with these values.
//
// TestPageFigures finds every figure of README.md and docs. Each figure is computed from a record or by today's code (a
// claim), written by a generator, or listed with the reason why nothing computes it.
package bench
