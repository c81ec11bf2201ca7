package operand

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Product is y[M,N] = x[M,K]·w[N,K]ᵀ with the weight w of a layer. Both operands have the product's type.
type Product struct {
	Layer   string
	Problem gemm.Problem
	X, W    *Matrix
	// Kernel describes the kernel that multiplies a quantised layer; empty for unquantised layers. Assumed is the
	// library of that kernel, or empty for lowtoggle's own kernel.
	Kernel  string
	Assumed cost.Kernel
	// Format is the format of a quantised layer; nil for an unquantised layer.
	Format *quant.Format
	// Codes are the packed codes [N, K/2] of a layer whose four-bit codes a kernel dequantises, two per byte; nil for
	// other layers.
	Codes *Matrix
}

// SameKernel reports whether the same kernel multiplies two products with the same kind of codes, or whether both
// products are unquantised.
func (p Product) SameKernel(other Product) bool {
	if p.Format == nil || other.Format == nil {
		return p.Format == other.Format
	}
	return p.Assumed == other.Assumed && p.Format.Codes == other.Format.Codes && p.Format.Per == other.Format.Per && p.Format.Block == other.Format.Block
}

// Multiplication describes the kernel. Unlike Kernel, it is set for unquantised layers as well.
func (p Product) Multiplication() string {
	if p.Kernel != "" {
		return p.Kernel
	}
	role := cost.Stationary
	if p.Problem.Streaming {
		role = cost.Streaming
	}
	return fmt.Sprintf("%s: unquantised layers, %s", cost.CuBLASLt, role.Slot())
}

// Whole returns both operands with all elements. Layers that share their activations share x's memory. Operands may lie
// in the mapped memory of [Product.Files], so read them under [weights.Guard].
func (p Product) Whole(ctx context.Context) (x, w gemm.Matrix, err error) {
	err = weights.Guard(strings.Join(p.Files(), ", "), func() error {
		var err error
		if x, err = p.X.Whole(ctx); err != nil {
			return fmt.Errorf("x of %s: %w", p.Layer, err)
		}
		if w, err = p.W.Whole(ctx); err != nil {
			return fmt.Errorf("%s: %w", p.Layer, err)
		}
		return nil
	})
	return x, w, err
}

// Files returns the files that hold the operands' elements.
func (p Product) Files() (files []string) {
	for _, m := range []*Matrix{p.X, p.W} {
		for _, f := range m.files() {
			if !slices.Contains(files, f) {
				files = append(files, f)
			}
		}
	}
	return files
}

// Products returns the products with every source's layers, in the order of the sources. It reads and draws no values.
// A layer's weights have the same scale in all sources.
//
// The error is a [NotFoundError] if a model lacks a tensor or layer, a [ShapeError] if N and K differ from the sources'
// shapes, a [TypeError] if weights need a different type, and a [ProblemError] if a product is too large for its type.
func (s *Set) Products(ctx context.Context, sources ...Source) ([][]Product, error) {
	layers, shapes, err := s.layers(ctx, sources)
	if err != nil {
		return nil, err
	}
	all := make([][]Product, len(sources))
	for i, l := range layers {
		if all[i], err = s.Multiply(ctx, l, shapes, s.options.Tokens); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Multiply returns the products of m tokens with layers. If m is 0, the number of tokens is that of X's tensor, or
// PrefillTokens if X is a pattern. Weights that must be converted to the product's type get a scale. The scale is that
// of the layer with the same index in like if the shapes are equal, or else the weight's own. Errors are those of
// [Set.Products].
func (s *Set) Multiply(ctx context.Context, layers, like []Layer, m int) ([]Product, error) {
	all := make([]Product, len(layers))
	for i, l := range layers {
		scale := l
		if i < len(like) && like[i].W.Rows == l.W.Rows && like[i].W.Cols == l.W.Cols {
			scale = like[i]
		}
		var err error
		if all[i], err = s.product(ctx, l, scale, m); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (s *Set) product(ctx context.Context, l, scale Layer, m int) (p Product, err error) {
	if err := ctx.Err(); err != nil {
		return p, err
	}
	typ := s.options.Type
	if typ == 0 {
		var ok bool
		if typ, ok = arith.TypeOf(l.W.DType); !ok {
			return p, &TypeError{l.Name, l.W.DType}
		}
	}
	p.Layer = l.Name
	if p.X, err = s.activations(ctx, l, m, typ); err != nil {
		return p, fmt.Errorf("x of %s: %w", l.Name, err)
	}
	p.W = l.W.fit(typ.Operand(), scale.W)
	p.Problem = gemm.Problem{M: p.X.Rows, N: p.W.Rows, K: p.W.Cols, Type: typ, Streaming: s.options.Streaming}
	if l.Format != nil && l.W.DType == typ.Operand() {
		var role cost.Role
		if role, p.Assumed, p.Kernel, err = s.options.kernel(*l.Format, typ, p.X.Rows); err != nil {
			return p, fmt.Errorf("%s: %w", l.Name, err)
		}
		p.Problem.Streaming, p.Format = role == cost.Streaming, l.Format
		p.Codes = l.packed()
	}
	if err := p.Problem.Validate(); err != nil {
		return p, &ProblemError{err}
	}
	return p, nil
}

// activations returns a layer's x. Layers with the same number of inputs share the x of a pattern. Layers with the same
// tensor share its matrix.
func (s *Set) activations(ctx context.Context, l Layer, m int, typ arith.Type) (*Matrix, error) {
	src := s.options.x(typ)
	key := activations{typ: typ, rows: m, in: l.W.Cols}
	switch {
	case src.Path != "" && src.Tensors == "":
		key.tensor = l.Name
	case src.Path != "":
		key.tensor = src.Tensors
	case m == 0:
		key.rows = PrefillTokens
	}
	s.mu.Lock()
	have := s.xs[key]
	s.mu.Unlock()
	if have != nil {
		return have, nil
	}
	x, err := s.makeActivations(ctx, src, key)
	if err != nil {
		return nil, err
	}
	x = x.fit(typ.Operand(), x)
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.xs[key]; have != nil { // another goroutine has made it meanwhile
		return have, nil
	}
	s.xs[key] = x
	return x, nil
}

func (s *Set) makeActivations(ctx context.Context, src Source, of activations) (*Matrix, error) {
	if src.Path != "" {
		return s.storedActivations(src, of)
	}
	d := of.typ.Operand()
	if err := src.checkRange(ctx, d, s.options.Seed); err != nil {
		return nil, err
	}
	return newDrawn(src, pattern.Spec{DType: d, Rows: of.rows, Cols: of.in, Seed: s.options.Seed}), nil
}

// storedActivations returns the first rows of a tensor, or all rows if the number of rows is 0.
func (s *Set) storedActivations(src Source, of activations) (*Matrix, error) {
	m, err := s.open(src)
	if err != nil {
		return nil, err
	}
	t, ok := m.Tensor(of.tensor)
	if !ok {
		return nil, noTensor(src.Path, of.tensor)
	}
	x, err := gemm.FromTensor(t, 0)
	switch {
	case err != nil:
		return nil, err
	case x.Cols != of.in:
		return nil, fmt.Errorf("%s: tensor %q has %d inputs, but the layer has %d", src.Path, of.tensor, x.Cols, of.in)
	case of.rows > x.Rows:
		return nil, fmt.Errorf("%s: tensor %q has only %d of the %d requested tokens", src.Path, of.tensor, x.Rows, of.rows)
	case of.rows > 0:
		x.Data = x.Data[:len(x.Data)/x.Rows*of.rows]
		x.Rows = of.rows
	}
	return newStored(x, false, t.File), nil
}
