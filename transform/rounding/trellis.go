package rounding

import (
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Trellis minimises error and energy together,
//
//	Σ_n [Scale·D·(t_n − v_n)² + Lambda·c(v_n)] + Lambda·Σ_n pair(v_{n−1}, v_n),
//
// over values v of the format. If the rates do not couple rows, the minimum is exact. Otherwise it is the best path
// along lanes of rows over the candidates. Lanes end at the borders of chunks of 256 rows.
type Trellis struct {
	Format weights.Format
	Rates  Rates
	Lambda float64 // λ, the relative error that is worth one unit of relative energy; 0: the nearest values
	Scale  float64 // makes errors relative; see [Loss.Scale]
}

// Begin implements [Chooser].
func (t Trellis) Begin(n, k int) (func(Column), error) {
	if err := t.Rates.Validate(t.Format); err != nil {
		return nil, err
	}
	for _, v := range []float64{t.Lambda, t.Scale} {
		if !(v >= 0) || math.IsInf(v, 1) {
			return nil, fmt.Errorf("rounding: lambda is %g and the scale is %g: give finite numbers that are not negative", t.Lambda, t.Scale)
		}
	}
	if t.Lambda == 0 {
		return Stored{t.Format}.Begin(n, k)
	}
	p := newPrices(t)
	if t.Rates.coupled() {
		return newViterbi(p, t).column, nil
	}
	return p.column, nil
}

// Alone implements [Alone].
func (t Trellis) Alone() bool { return t.Lambda == 0 || !t.Rates.coupled() }

// prices are the energies of single elements. Costs are compared in float32.
type prices struct {
	candidates
	bits  []float32         // by number of significant bits
	slots [maxSlots]float32 // by slot of the value
	scale float64
	// Between these magnitudes, as bits of float32, the format has all its significant bits.
	from, to uint32
}

func newPrices(t Trellis) *prices {
	p := &prices{candidates: candidatesOf(t.Format), scale: t.Scale}
	for _, c := range t.Rates.Significant {
		p.bits = append(p.bits, float32(t.Lambda*c))
	}
	for i := range p.candidates.slots {
		p.slots[i] = p.bits[significant(i)]
	}
	p.from, p.to = ordinary(t.Format)
	return p
}

// gain returns the factor of distances before they are squared.
func (p *prices) gain(d float64) float32 {
	return float32(min(math.Sqrt(p.scale*max(d, 0)), math.MaxFloat32))
}

// column chooses each value by itself.
func (p *prices) column(c Column) {
	g, t := p.gain(c.D), c.T
	for len(t) > 0 {
		n := 0
		if vectors && len(t) >= lanes {
			n = lanes * nearest16(&t[0], len(t)/lanes, g, &p.bits[0], len(p.bits)-1, p.from, p.to)
		}
		// A block that the kernel leaves out, or the rest of the column.
		rest := t[n:min(n+lanes, len(t))]
		p.each(rest, g)
		t = t[n+len(rest):]
	}
}

// lanes is the number of elements that the vector kernel processes at a time.
const lanes = 16

// each chooses values one by one. For most targets it gives the results of nearest16.
func (p *prices) each(targets []float32, g float32) {
	for i, t := range targets {
		b := math.Float32bits(t)
		mag := b &^ (1 << 31)
		var v uint32
		if mag >= p.from && mag < p.to {
			v = p.normal(mag, g)
		} else {
			v = p.any(t, g)
		}
		if v != 0 { // zero is always positive
			v |= b & (1 << 31)
		}
		targets[i] = math.Float32frombits(v)
	}
}

// normal returns the best value for a magnitude between from and to. The nearest value with b ≥ 2 significant bits in
// the same binade is an odd multiple of the b-th bit. A value in another binade is no better than the power of two in
// between. Keys order candidates by cost, and equal costs by magnitude.
func (p *prices) normal(mag uint32, g float32) uint32 {
	x := math.Float32frombits(mag)
	low := mag &^ (binade - 1)
	best := min(key(x, 0, g, p.bits[0]), key(x, low, g, p.bits[1]), key(x, low+binade, g, p.bits[1]))
	unit := uint32(binade / 2)
	for _, cost := range p.bits[2:] {
		best = min(best, key(x, mag&^(2*unit-1)|unit, g, cost))
		unit >>= 1
	}
	return uint32(best)
}

func key(x float32, value uint32, gain, cost float32) uint64 {
	d := (x - math.Float32frombits(value)) * gain
	return uint64(math.Float32bits(float32(d*d)+cost))<<32 | uint64(value)
}

// any is like normal, for targets of any magnitude.
func (p *prices) any(t, g float32) uint32 {
	var slots [maxSlots]uint32
	p.listEdge(&slots, p.clamp(t))
	x := max(t, -t)
	best := key(x, 0, g, p.bits[0])
	for i, v := range slots[:p.candidates.slots] {
		if v != 0 {
			best = min(best, key(x, v&^(1<<31), g, p.slots[i]))
		}
	}
	return uint32(best)
}
