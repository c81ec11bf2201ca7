package pass

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Fits returns the reason why the pass does not change the codes of a quantised weight; empty if it does.
func (c Choice) Fits(q *quant.Quantised) string {
	if c.Pass == nil || c.Pass.Codes == nil || q == nil {
		return "this pass does not change codes"
	}
	return c.Pass.Codes(q, c.Args)
}

// Codes returns how the layer's weight is stored as codes; nil if its values are stored.
func (l *Layer) Codes() *quant.Quantised { return l.Weight.Quantised }

// anyCodes is for passes that change codes of every format.
func anyCodes(*quant.Quantised, []string) string { return "" }

// zeroableCodes returns the largest number of low bits of a weight's codes that may be zeroed. Beyond this number,
// all values would be zero.
func zeroableCodes(q *quant.Quantised) int {
	switch d := q.Tensors[0].DType; {
	case d == weights.F8E4M3 || d == weights.F8E4M3FNUZ:
		return 3
	case d == weights.F8E5M2 || d == weights.F8E5M2FNUZ:
		return 2
	case isFP4(q):
		return 1
	}
	bits, _ := strconv.Atoi(strings.TrimPrefix(q.Format.Codes, "int"))
	return max(0, bits-2)
}

func isFP4(q *quant.Quantised) bool { return strings.HasSuffix(q.Format.Codes, "fp4") }

func isFP8(q *quant.Quantised) bool { return q.Format.Codes == "fp8" }

// roundCodes compiles round for a quantised weight.
func roundCodes(q *quant.Quantised, bits Bits) (o program.Operation, err error) {
	if bits.Truncate {
		return o, errors.New("codes are rounded to the nearest value: leave out truncate")
	}
	if bits.Zeroed < 0 || bits.Zeroed > zeroableCodes(q) {
		return o, fmt.Errorf("cannot zero %d low bits of %s codes: give a number of bits from 0 to %d", bits.Zeroed, q.Format.Codes, zeroableCodes(q))
	}
	return program.Operation{Codes: &program.Recoding{Zeroed: bits.Zeroed}}, nil
}
