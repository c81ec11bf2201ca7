package pass

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Bits is the data of a step of [Round].
type Bits struct {
	// Zeroed is the number of low mantissa bits of every value to zero; for I8, low bits of the integer.
	Zeroed int `json:"zeroed"`
	// Truncate drops the bits; otherwise values are rounded to the nearest multiple, ties to even.
	Truncate bool `json:"truncate,omitempty"`
}

// Round zeroes low mantissa bits.
var Round = &Pass{
	Name: "round", Class: Lossy, Chooser: true,
	Usage: "round[=BITS[/truncate]]",
	Doc: "Zeroes the BITS low mantissa bits of every value. Values are rounded to nearest (ties to even), or truncated " +
		"with /truncate. A value that would round beyond the type's range is truncated. Without BITS, the " +
		"planner zeroes as many bits as the budget allows. The pass saves energy in every workload.",
	Args: checkRound,
	Codes: func(q *quant.Quantised, args []string) string {
		if len(args) > 1 {
			return "codes are rounded to the nearest value, never truncated"
		}
		return ""
	},
	NotJoint: func(args []string) string {
		if len(args) > 1 {
			return notTruncated
		}
		return ""
	},
	Candidates: func(_ context.Context, l *Layer, args []string) (all []any, err error) {
		most := l.Format.Zeroable()
		if q := l.Codes(); q != nil {
			most = zeroableCodes(q)
		}
		if len(args) > 0 {
			bits, _ := strconv.Atoi(args[0])
			return []any{Bits{Zeroed: min(bits, most), Truncate: len(args) > 1}}, nil
		}
		for bits := most; bits >= 1; bits-- {
			all = append(all, Bits{Zeroed: bits})
		}
		return all, nil
	},
	Preview: func(_ context.Context, l *Layer, data any) (program.Operation, error) {
		return roundOperation(l.Format, data.(Bits)), nil
	},
	Compile: func(s *plan.Step, c *program.Context) (o program.Operation, err error) {
		f := c.Program.Format
		bits, err := plan.Data[Bits](s)
		if err != nil {
			return o, err
		}
		if c.Program.Coded() {
			return roundCodes(c.Program.Source.Quantised, bits)
		}
		if bits.Zeroed < 0 || bits.Zeroed > f.MantBits {
			return o, fmt.Errorf("the number of bits to zero must be from 0 to %d", f.MantBits)
		}
		return roundOperation(f, bits), nil
	},
	Describe: func(s *plan.Step) string {
		bits, _ := plan.Data[Bits](s)
		what := "round"
		if bits.Truncate {
			what = "truncate"
		}
		if bits.Zeroed == 1 {
			return what + " 1 bit"
		}
		return fmt.Sprintf("%s %d bits", what, bits.Zeroed)
	},
}

// notTruncated is the reason why truncation cannot be joint.
const notTruncated = "truncated values cannot be compensated: round to nearest"

func roundOperation(f weights.Format, bits Bits) program.Operation {
	o := program.Operation{Apply: func(b program.Block) { roundBlock(f, b.Data, bits) }}
	if bits.Truncate {
		o.NotJoint = notTruncated
		return o
	}
	o.Chooser = func(int, float64) (rounding.Chooser, error) {
		return rounding.Bits{Format: f, Zeroed: bits.Zeroed}, nil
	}
	return o
}

func checkRound(args []string) error {
	if bits, err := strconv.Atoi(args[0]); err != nil || bits < 1 || bits > 23 {
		return fmt.Errorf("%q is not a number of bits from 1 to 23", args[0])
	}
	if len(args) > 2 || len(args) == 2 && args[1] != "truncate" {
		return errors.New(`only "truncate" may follow the bits`)
	}
	return nil
}

// roundBlock rounds a slice of elements in place, with the results of weights.Format.Round.
func roundBlock(f weights.Format, data []byte, bits Bits) {
	if bits.Zeroed == 0 {
		return
	}
	if f.IsFloat() {
		data = roundWords(f, data, bits)
	} else if len(data) >= 256 {
		data = roundInt8s(f, data, bits)
	}
	for i := range len(data) / (f.Bits / 8) {
		f.SetElem(data, i, f.Round(f.Elem(data, i), bits.Zeroed, bits.Truncate))
	}
}

// roundInt8s rounds integers by a table and returns an empty rest.
func roundInt8s(f weights.Format, data []byte, bits Bits) []byte {
	var all [256]byte
	for b := range all {
		all[b] = byte(f.Round(uint32(b), bits.Zeroed, bits.Truncate))
	}
	for i, b := range data {
		data[i] = all[b]
	}
	return nil
}

// roundWords rounds floats eight bytes at a time, and returns the rest that does not fill a word. Elements of a word
// do not interfere: a magnitude leaves the element's highest bit free, so a carry stays in the element.
func roundWords(f weights.Format, data []byte, bits Bits) []byte {
	ones := ^uint64(0) / (1<<f.Bits - 1) // 1 in every element
	var (
		unit  = uint64(1) << bits.Zeroed
		low   = (unit - 1) * ones
		half  = (unit/2 - 1) * ones
		odd   = ones
		sign  = uint64(f.SignMask()) * ones
		large = uint64(f.SignMask()-1-f.MaxFinite) * ones // adding it to a non-finite magnitude sets the sign bit
	)
	if bits.Truncate {
		half, odd = 0, 0
	}
	for len(data) >= 8 {
		v := binary.LittleEndian.Uint64(data)
		up := v&^sign + half + v>>bits.Zeroed&odd
		if (up+large)&sign != 0 { // NaN, infinity or rounding to infinity are rare: handle them one by one
			for i := range 64 / f.Bits {
				f.SetElem(data, i, f.Round(f.Elem(data, i), bits.Zeroed, bits.Truncate))
			}
		} else {
			binary.LittleEndian.PutUint64(data, v&sign|up&^low)
		}
		data = data[8:]
	}
	return data
}
