package cost

import (
	"encoding/binary"
	"math"
	"sync"

	"github.com/lowtoggle/lowtoggle/weights"
)

// element is a decoded element of an operand: ±mant·2^exp, up to an exponent that is common to all elements.
type element struct {
	bits     uint32
	mant     uint32 // with the hidden bit; 0 for zero
	exp      int32  // 0 for zero
	negative bool
	value    float64
}

// decoder decodes a format's elements. For at most 16 bits it uses a table.
type decoder struct {
	f     weights.Format
	table []element
}

var decoders sync.Map // weights.DType → *decoder

func newDecoder(f weights.Format) *decoder {
	if d, ok := decoders.Load(f.DType); ok {
		return d.(*decoder)
	}
	d, _ := decoders.LoadOrStore(f.DType, makeDecoder(f))
	return d.(*decoder)
}

func makeDecoder(f weights.Format) *decoder {
	d := &decoder{f: f}
	if f.Bits > 16 {
		return d
	}
	table := make([]element, 1<<f.Bits)
	for b := range table {
		table[b] = d.decode(uint32(b))
	}
	d.table = table
	return d
}

// elements decodes elements until to is full.
func (d *decoder) elements(to []element, data []byte) {
	if d.f.Bits == 16 {
		table := (*[1 << 16]element)(d.table)
		data = data[:2*len(to)]
		for i := range to {
			to[i] = table[binary.LittleEndian.Uint16(data[2*i:])]
		}
		return
	}
	for i := range to {
		b := d.f.Elem(data, i)
		if d.table != nil {
			to[i] = d.table[b]
		} else {
			to[i] = d.decode(b)
		}
	}
}

func (d *decoder) decode(b uint32) element {
	f := &d.f
	l := element{bits: b}
	if f.IsFloat() {
		l.mant, l.exp, l.negative = b&f.MantMask(), int32(b&f.ExpMask()>>f.MantBits), b&f.SignMask() != 0
		switch {
		case l.exp > 0:
			l.mant |= 1 << f.MantBits
		case l.mant > 0: // subnormal
			l.exp = 1
		}
	} else if v := int32(int8(b)); v < 0 {
		l.mant, l.negative = uint32(-v), true
	} else {
		l.mant = uint32(v)
	}
	l.value = math.Ldexp(float64(l.mant), int(l.exp))
	if l.negative {
		l.value = -l.value
	}
	return l
}
