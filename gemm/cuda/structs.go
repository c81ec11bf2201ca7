package cuda

// algorithm is cublasLtMatmulAlgo_t, opaque.
type algorithm struct{ data [8]uint64 }

// heuristic is cublasLtMatmulHeuristicResult_t.
type heuristic struct {
	algo      algorithm
	workspace uint64
	state     status
	waves     float32
	reserved  [4]int32
}
