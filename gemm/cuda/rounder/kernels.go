package rounder

import (
	"context"
	_ "embed"
	"errors"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
)

//go:embed kernels/rounder.cu
var source string

// Sizes that must match the kernels.
const (
	tile       = 128 // tile of a product; matrices on the card are padded to multiples of this number
	block      = 128 // columns that are rounded at a time
	panel      = 64  // columns of a factor that are computed at a time
	mostPrices = 26
	square     = 32 // rows and columns that are transposed at a time
	threads    = 256
)

// The least pivots as shares of the diagonal, as in package rounding.
const (
	noise      = 1e-5
	indefinite = 1e-3
)

type kernels struct {
	module                                                                 *cuda.Module
	product, unpack, corner, solve, gains, gather, scatter, decide, powers *cuda.Function
}

func compile(ctx context.Context, d *cuda.Device) (*kernels, error) {
	module, err := d.Compile(ctx, "rounder.cu", source)
	if err != nil {
		return nil, err
	}
	k := &kernels{module: module}
	for _, f := range []struct {
		to   **cuda.Function
		name string
	}{
		{&k.product, "product"}, {&k.unpack, "unpack"}, {&k.corner, "corner"}, {&k.solve, "solve"}, {&k.gains, "gains"},
		{&k.gather, "gather"}, {&k.scatter, "scatter"}, {&k.decide, "decide"}, {&k.powers, "powers"},
	} {
		if *f.to, err = module.Function(f.name, 0); err != nil {
			return nil, errors.Join(err, module.Close())
		}
	}
	return k, nil
}

func ceil(n, d int) int { return (n + d - 1) / d }

func padded(n int) int { return ceil(n, tile) * tile }

func flag(set bool) int {
	if set {
		return 1
	}
	return 0
}

// multiply queues c += aᵀ·b; see the kernel product.
func (k *kernels) multiply(c cuda.Address, ldc int, a cuda.Address, lda int, b cuda.Address, ldb, m, n, depth int, fresh, upper bool) error {
	return k.product.Launch(cuda.Grid{X: ceil(n, tile), Y: ceil(m, tile)}, cuda.Grid{X: threads},
		c, ldc, a, lda, b, ldb, m, n, depth, flag(fresh), flag(upper))
}
