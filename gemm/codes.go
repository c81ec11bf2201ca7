package gemm

import (
	"context"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Codes is a matrix with four bits per element, in the form that a dequantising kernel reads from memory. Each group of
// columns in a row has a scale. Integer codes may also have a zero point per group. The kernel multiplies by
// [Codes.Matrix].
type Codes struct {
	Rows, Cols int
	// FP4 is true if the codes are E2M1 numbers. Otherwise they are unsigned integers.
	FP4   bool
	Codes []byte // [Rows, Cols], one code per byte, below 16
	Group int    // number of columns per group
	// ScaleType is BF16, F8_E4M3 or F8_E8M0.
	ScaleType weights.DType
	Scales    []byte // [Rows, Cols/Group]
	Zeros     []byte // [Rows, Cols/Group], for integer codes. Default: 8
}

// FewTokens is the largest number of tokens for which package cuda multiplies codes only as the A operand.
const FewTokens = 16

// Bytes returns the size of codes, scales and zero points in memory.
func (c *Codes) Bytes() int { return len(c.Codes)/2 + len(c.Scales) + len(c.Zeros) }

// Validate returns an error if the sizes of codes, groups, scales and zero points disagree, or if a value is out of
// range.
func (c *Codes) Validate() error {
	if c.Rows < 1 || c.Cols < 1 || c.Group < 1 || c.Cols%c.Group != 0 {
		return fmt.Errorf("the columns of %d×%d codes cannot be divided into groups of %d", c.Rows, c.Cols, c.Group)
	}
	groups := c.Rows * c.Cols / c.Group
	size := c.ScaleType.Bits() / 8
	switch {
	case c.ScaleType != weights.BF16 && c.ScaleType != weights.F8E4M3 && c.ScaleType != weights.F8E8M0:
		return fmt.Errorf("scales of four-bit codes have type %s instead of BF16, F8_E4M3 or F8_E8M0", c.ScaleType)
	case len(c.Codes) != c.Rows*c.Cols || len(c.Scales) != groups*size || c.Zeros != nil && len(c.Zeros) != groups:
		return fmt.Errorf("%d codes, %d bytes of scales and %d zero points are not the sizes for a %d×%d matrix in groups of %d", len(c.Codes), len(c.Scales), len(c.Zeros), c.Rows, c.Cols, c.Group)
	case c.FP4 && c.Zeros != nil:
		return fmt.Errorf("FP4 codes cannot have zero points: leave Zeros empty")
	}
	for _, q := range c.Codes {
		if q > 15 {
			return fmt.Errorf("code %d needs more than four bits", q)
		}
	}
	for _, z := range c.Zeros {
		if z > 16 {
			return fmt.Errorf("zero point %d: the largest is 16", z)
		}
	}
	return nil
}

// fp4 holds the values of the E2M1 codes.
var fp4 = [16]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, float32(math.Copysign(0, -1)), -0.5, -1, -1.5, -2, -3, -4, -6}

// Matrix returns the values that a dequantising kernel multiplies: scale·(code − zero), rounded to BF16. The result
// keeps a reference to the codes. The error is that of [Codes.Validate].
func (c *Codes) Matrix() (Matrix, error) {
	if err := c.Validate(); err != nil {
		return Matrix{}, err
	}
	m := NewMatrix(weights.BF16, c.Rows, c.Cols)
	m.Codes = c
	groups := c.Cols / c.Group
	err := parallel.Run(context.Background(), c.Rows, 0, func(_ context.Context, r int) error {
		for g := range groups {
			at := r*groups + g
			scale := c.scale(at)
			var of [16]uint16
			for q := range of {
				v := fp4[q]
				if !c.FP4 {
					v = float32(q - c.zero(at))
				}
				of[q] = toBF16(scale * v)
			}
			for k := g * c.Group; k < (g+1)*c.Group; k++ {
				b := of[c.Codes[r*c.Cols+k]]
				m.Data[2*(r*c.Cols+k)], m.Data[2*(r*c.Cols+k)+1] = byte(b), byte(b>>8)
			}
		}
		return nil
	})
	return m, err
}

func (c *Codes) zero(group int) int {
	if c.Zeros == nil {
		return 8
	}
	return int(c.Zeros[group])
}

func (c *Codes) scale(group int) float32 {
	switch c.ScaleType {
	case weights.F8E8M0:
		return float32(math.Ldexp(1, int(c.Scales[group])-127))
	default:
		f, _ := c.ScaleType.Format()
		return f.Value(f.Elem(c.Scales, group))
	}
}

func toBF16(v float32) uint16 {
	f, _ := weights.BF16.Format()
	return uint16(f.FromValue(v))
}
