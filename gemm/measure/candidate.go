package measure

import (
	"context"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// Candidate is a list of products whose weights belong to one source.
type Candidate struct {
	Name     string
	Products []cuda.Product
	// Files are the mapped files that hold operands. If the memory of a mapped file fails, the error names these files.
	// Default: none.
	Files []string
	// Kernels describe the kernels of quantised layers. Default: none.
	Kernels []string
	// Apart is true for a variant that runs in its own memory, so that its ratios include the effect of its addresses.
	// Default: false.
	Apart bool
}

// NewCandidate returns a candidate for products. It reads the operands completely.
func NewCandidate(ctx context.Context, name string, products []operand.Product) (Candidate, error) {
	if ctx == nil {
		return Candidate{}, parallel.ErrNoContext
	}
	c := Candidate{Name: name, Kernels: operand.Kernels(products)}
	for _, p := range products {
		if err := ctx.Err(); err != nil {
			return c, err
		}
		x, w, err := p.Whole(ctx)
		if err != nil {
			return c, err
		}
		c.Products = append(c.Products, cuda.Product{Name: p.Layer, Problem: p.Problem, X: x, W: w})
		for _, f := range p.Files() {
			if !slices.Contains(c.Files, f) {
				c.Files = append(c.Files, f)
			}
		}
	}
	return c, nil
}
