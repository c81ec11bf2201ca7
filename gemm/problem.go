package gemm

import (
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// Problem is one product y[M,N] = x[M,K]·w[N,K]ᵀ.
type Problem struct {
	M    int        `json:"m"` // tokens, at least 1
	N    int        `json:"n"` // outputs, at least 1
	K    int        `json:"k"` // inputs, at least 1
	Type arith.Type `json:"type"`
	// Streaming puts the weights into the streaming operand slot, as in w·xᵀ. False puts them into the stationary slot,
	// as linear layers of common runtimes do.
	Streaming bool `json:"streaming"`
}

// maxIntK is the longest sum of int8 products that cannot overflow int32.
const maxIntK = math.MaxInt32 / (128 * 128)

// maxBytes is the largest size of an operand or result. It is far above a card's memory and far below the range of int.
const maxBytes = 1 << 40

// size returns an upper bound of a matrix's size in bytes. It assumes elements of the output's type, which is the
// largest.
func (p Problem) size(rows, cols int) float64 {
	return float64(rows) * float64(cols) * float64(p.Type.Output().Bits()) / 8
}

// Validate returns an error for a shape or type that cannot be multiplied.
func (p Problem) Validate() error {
	switch {
	case !p.Type.Valid():
		return fmt.Errorf("product %dx%dx%d: unknown arithmetic type %v", p.M, p.N, p.K, p.Type)
	case p.M < 1 || p.N < 1 || p.K < 1:
		return fmt.Errorf("product %v: every dimension must be at least 1", p)
	case max(p.M, p.N, p.K) > math.MaxInt32-16:
		return fmt.Errorf("product %v: no dimension may exceed 2³¹", p)
	case max(p.size(p.M, p.K), p.size(p.N, p.K), p.size(p.M, p.N)) > maxBytes:
		return fmt.Errorf("product %v: no matrix may exceed 2⁴⁰ bytes", p)
	case p.Type == arith.INT8 && p.K > maxIntK:
		return fmt.Errorf("product %v: sums of more than %d int8 products can overflow int32", p, maxIntK)
	}
	return nil
}

// Fits returns an error if the operands' shapes or element types differ from p's.
func (p Problem) Fits(x, w Matrix) error {
	if err := p.Validate(); err != nil {
		return err
	}
	for _, o := range []struct {
		name string
		m    Matrix
		rows int
	}{{"x", x, p.M}, {"w", w, p.N}} {
		switch {
		case o.m.DType != p.Type.Operand():
			return fmt.Errorf("product %v: %s is %s, but %s multiplies %s: convert it with Matrix.Fit", p, o.name, o.m.DType, p.Type, p.Type.Operand())
		case o.m.Rows != o.rows || o.m.Cols != p.K:
			return fmt.Errorf("product %v: %s is %d×%d, not %d×%d", p, o.name, o.m.Rows, o.m.Cols, o.rows, p.K)
		case len(o.m.Data) != o.m.Rows*o.m.Cols*o.m.DType.Bits()/8:
			return fmt.Errorf("product %v: %s holds %d bytes, which is not the size of %d×%d %s", p, o.name, len(o.m.Data), o.m.Rows, o.m.Cols, o.m.DType)
		case o.m.Codes != nil && (o.m.Codes.Rows != o.m.Rows || o.m.Codes.Cols != o.m.Cols):
			return fmt.Errorf("product %v: %s has codes of %d×%d, not of %d×%d", p, o.name, o.m.Codes.Rows, o.m.Codes.Cols, o.m.Rows, o.m.Cols)
		}
		if err := o.m.Scales.fits(o.m.Rows, o.m.Cols); err != nil {
			return fmt.Errorf("product %v: %s has %w", p, o.name, err)
		}
	}
	return nil
}

// Ops returns the number of operations, counting multiplications and additions: 2·M·N·K.
func (p Problem) Ops() float64 { return 2 * float64(p.M) * float64(p.N) * float64(p.K) }

// Bytes returns the size of both operands and the result, each counted once.
func (p Problem) Bytes() float64 {
	in, out := float64(p.Type.Operand().Bits())/8, float64(p.Type.Output().Bits())/8
	return in*float64(p.K)*float64(p.M+p.N) + out*float64(p.M)*float64(p.N)
}

// String returns shape, type and the weights' role, such as "8192x8192x8192 bf16 stationary".
func (p Problem) String() string {
	role := "stationary"
	if p.Streaming {
		role = "streaming"
	}
	return fmt.Sprintf("%dx%dx%d %v %s", p.M, p.N, p.K, p.Type, role)
}
