package rounding

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Device computes [NewFactor], [Round] and [Power] instead of the CPU, with the same bits. Several goroutines may use
// it.
type Device interface {
	// Hessian returns a Hessian on the device. The device calls load when it first needs the data. It may cache the
	// data under key and may call load again. key must identify the bits of the data.
	Hessian(key string, load func(context.Context) (*Triangle, error)) DeviceHessian
}

// DeviceHessian is a Hessian on a [Device].
type DeviceHessian interface {
	// Diagonal returns the Hessian's diagonal.
	Diagonal(ctx context.Context) ([]float32, error)
	// Powers returns [Power] of w and each q. A q has w's shape and format. For a nil q, and without any q, it
	// returns the power of w.
	Powers(ctx context.Context, w Values, q ...[]byte) ([]float64, error)
	// Round runs [NewFactor], and then [Round] with each of the choosers. The choosers must be [Table.Alike] and for
	// w's format. Values that are not finite keep their bits.
	Round(ctx context.Context, w Values, f FactorOptions, choosers []Table, o Options) ([][]byte, error)
}

// Values are values [Rows, Cols] in a stored format, row by row. Data may lie in a mapped file.
type Values struct {
	Rows, Cols int
	Format     weights.Format
	Data       []byte
}

// Decode writes the values of rows from first on into m.
func (v Values) Decode(m sgemm.Matrix, first int) {
	size := v.Cols * v.Format.Bits / 8
	for n := range m.Rows {
		v.Format.Decode(m.Row(n), v.Data[(first+n)*size:][:size])
	}
}

// Triangle is the upper triangle of a Hessian, row by row without gaps.
type Triangle struct {
	Width int
	Data  []float32
}

// NewTriangle copies the upper triangle of h.
func NewTriangle(h sgemm.Matrix) *Triangle {
	t := &Triangle{Width: h.Rows, Data: make([]float32, 0, h.Rows*(h.Rows+1)/2)}
	for i := range h.Rows {
		t.Data = append(t.Data, h.Row(i)[i:]...)
	}
	return t
}

// Diagonal returns the Hessian's diagonal.
func (t *Triangle) Diagonal() []float32 {
	d := make([]float32, t.Width)
	at := 0
	for i := range d {
		d[i] = t.Data[at]
		at += t.Width - i
	}
	return d
}

// Check returns an error if an element is not finite or the diagonal is negative.
func (t *Triangle) Check() error {
	rest := t.Data
	for i := range t.Width {
		if err := checkRow(i, rest[:t.Width-i]); err != nil {
			return err
		}
		rest = rest[t.Width-i:]
	}
	return nil
}

// checkRow checks row i of a Hessian, from the diagonal element to the end.
func checkRow(i int, row []float32) error {
	for j, v := range row {
		if v-v != 0 {
			return fmt.Errorf("rounding: the Hessian is %g at (%d, %d); leave out tokens whose activations overflow", v, i, i+j)
		}
	}
	if row[0] < 0 {
		return fmt.Errorf("rounding: the Hessian is %g at (%d, %d); a mean of squares is not negative", row[0], i, i)
	}
	return nil
}

// Kind is the rule of a [Table].
type Kind int

const (
	PriceKind Kind = iota // the value of least squared error plus price
	BitsKind              // the nearest value whose lowest bits are zero
	GridKind              // the nearest multiple of a row's step
)

// Table is a chooser as numbers, for a device. Every value depends only on its target, its column's weight and its
// row.
type Table struct {
	Kind      Kind
	Format    weights.Format
	Prices    []float32 // for PriceKind: energy of a value, by number of significant bits
	Scale     float64   // for PriceKind
	Zeroed    int       // for BitsKind
	Exponents []int     // for GridKind: exponents of each row's step
}

// Alike reports whether two tables differ only in their prices or steps.
func (t Table) Alike(o Table) bool {
	return t.Kind == o.Kind && t.Format == o.Format && t.Scale == o.Scale && t.Zeroed == o.Zeroed
}

// Tabulated is a [Chooser] that may have a [Table].
type Tabulated interface {
	Chooser
	// Table returns the chooser's table for a layer W[n,k]. ok is false if there is no table, or if Begin fails.
	Table(n, k int) (t Table, ok bool)
}

// Table implements [Tabulated].
func (s Stored) Table(n, k int) (Table, bool) { return Bits{Format: s.Format}.Table(n, k) }

// Table implements [Tabulated]. Formats of powers of two have no table.
func (b Bits) Table(n, k int) (Table, bool) {
	_, err := b.Begin(n, k)
	return Table{Kind: BitsKind, Format: b.Format, Zeroed: b.Zeroed}, err == nil && !(b.Format.IsFloat() && b.Zeroed == b.Format.MantBits)
}

// Table implements [Tabulated].
func (g Grid) Table(n, k int) (Table, bool) {
	_, err := g.Begin(n, k)
	return Table{Kind: GridKind, Format: g.Format, Exponents: g.Exponents}, err == nil
}

// Table implements [Tabulated]. Rates that couple rows have no table.
func (t Trellis) Table(n, k int) (Table, bool) {
	if _, err := t.Begin(n, k); err != nil || !t.Alone() {
		return Table{}, false
	}
	if t.Lambda == 0 {
		return Stored{t.Format}.Table(n, k)
	}
	return Table{Kind: PriceKind, Format: t.Format, Scale: t.Scale, Prices: newPrices(t).bits}, true
}

// Lattice describes a format for a device's kernels. In the binade of 2^e, the format's values are the multiples of
// 2^max(e−Mant, Floor), from Bottom to Top. Sign is the bit of a float32 that zeros keep. Between the magnitudes From
// and To, as bits of float32, values have all Bits significant bits.
type Lattice struct {
	Mant, Floor    int
	Top, Bottom    float32
	Sign, From, To uint32
	Bits           int
}

// LatticeOf returns a format's lattice.
func LatticeOf(f weights.Format) Lattice {
	l := latticeOf(f)
	from, to := ordinary(f)
	return Lattice{l.mant, l.floor, l.top, l.bottom, l.sign, from, to, f.MantBits + 1}
}

// ordinary returns the range of magnitudes, as bits of float32, in which a format has all its significant bits.
func ordinary(f weights.Format) (from, to uint32) {
	if !f.IsFloat() {
		return 0, 0
	}
	return math.Float32bits(float32(math.Ldexp(1, 1-f.Bias))), math.Float32bits(f.Value(f.MaxFinite)) &^ (binade - 1)
}

// Damping returns the number to add to a Hessian's diagonal: relative times the diagonal's mean. A relative damping
// of 0 stands for the default.
func Damping(diagonal []float32, relative float64) (float64, error) {
	if !(relative >= 0) || math.IsInf(relative, 1) {
		return 0, fmt.Errorf("rounding: damping is %g; give a number that is not negative", relative)
	}
	if relative == 0 {
		relative = 1e-3
	}
	var trace float64
	for _, v := range diagonal {
		trace += float64(v)
	}
	if trace == 0 {
		return 0, nil
	}
	return relative * trace / float64(len(diagonal)), nil
}

// Order returns the order of rounding: the columns in first, then the other columns by descending diagonal. Of equal
// columns, the smaller index comes first.
func Order(diagonal []float32, first []int) ([]int, error) {
	chosen := make([]bool, len(diagonal))
	for _, k := range first {
		if k < 0 || k >= len(diagonal) || chosen[k] {
			return nil, fmt.Errorf("rounding: column %d of the columns to round first occurs twice, or is not from 0 to %d", k, len(diagonal)-1)
		}
		chosen[k] = true
	}
	rest := slices.DeleteFunc(naturalOrder(len(diagonal)), func(k int) bool { return chosen[k] })
	slices.SortStableFunc(rest, func(a, b int) int { return compareDescending(diagonal[a], diagonal[b]) })
	return append(slices.Clone(first), rest...), nil
}

// NotSemidefinite returns the error for a pivot that is impossible in a positive semidefinite matrix.
func NotSemidefinite(pivot, damp float64) error {
	return fmt.Errorf("rounding: the Hessian is not positive semidefinite (pivot %.3g with %.3g added); "+
		"give XᵀX in full", pivot, damp)
}

// ErrNoFeedback is the error of a [Device] that gets an all-zero Hessian for rounding. The CPU handles this case.
var ErrNoFeedback = errors.New("the Hessian is zero: there is no feedback")
