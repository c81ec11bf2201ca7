package cost

// Fields is a number of bits for each bit field of an element. Toggles of the three fields load
// different wires, so they are never lumped together before a model has weighed them.
type Fields struct {
	Sign     uint64 `json:"sign"`
	Exponent uint64 `json:"exponent"`
	Mantissa uint64 `json:"mantissa"`
}

// Total is the number of bits in all fields.
func (f Fields) Total() uint64 { return f.Sign + f.Exponent + f.Mantissa }

func (f *Fields) add(g Fields) {
	f.Sign += g.Sign
	f.Exponent += g.Exponent
	f.Mantissa += g.Mantissa
}

func (f Fields) times(n uint64) Fields {
	return Fields{n * f.Sign, n * f.Exponent, n * f.Mantissa}
}

// per divides the counts by n; all zero where n is 0.
func (f Fields) per(n uint64) Rates {
	if n == 0 {
		return Rates{}
	}
	d := float64(n)
	return Rates{float64(f.Sign) / d, float64(f.Exponent) / d, float64(f.Mantissa) / d}
}

// Rates is a number of bits per element, or per pair of elements, for each bit field.
type Rates struct {
	Sign     float64 `json:"sign"`
	Exponent float64 `json:"exponent"`
	Mantissa float64 `json:"mantissa"`
}

// Total is the rate of all fields together.
func (r Rates) Total() float64 { return r.Sign + r.Exponent + r.Mantissa }
