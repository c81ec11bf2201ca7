package gemm

// Backend multiplies.
type Backend interface {
	// Name says what does the work, for reports.
	Name() string
	// Multiply returns y[M,N] row-major, in either role. The operands must fit p ([Problem.Fits]).
	Multiply(p Problem, x, w Matrix) ([]float64, error)
	// Close gives back what the backend holds; it must not be used after that.
	Close() error
}
