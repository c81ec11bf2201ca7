package verify

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/elementary"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Codes is a matrix of a quantised weight before and after, for [Claim.Codes].
type Codes struct {
	Source, Result *quant.Matrix // Source is nil if the source is not quantised
	// Reference is true if the codes approximate another model's values.
	Reference bool
	// Near writes row n of the values that the codes should approximate; nil if these values are unknown.
	Near func(dst []float32, n int)
	// Feedback is true if the codes differ from the nearest ones because later columns absorb errors.
	Feedback bool
	// Alone is true if no other step changes the weight.
	Alone bool
}

// float reports whether codes are floating-point numbers.
func (c *Codes) float() bool { return c.Result.Book.Zero == 0 && c.Result.Zeros == nil }

// fp8 reports whether codes are FP8 numbers.
func (c *Codes) fp8() bool { return c.float() && len(c.Result.Book.Values) == 256 }

// lookCodes compares a tensor of a quantised weight that has steps. The tensor with the codes reports on the whole
// weight.
func (c *claims) lookCodes(ctx context.Context, t *Tensor, q *quant.Quantised, role quant.Role, same bool) error {
	claim, moved := c.image(q.Name)
	exact := moved && len(c.steps[q.Name]) == 0
	switch {
	case same:
		t.Class = Identical
	case moved && (role == quant.ZeroPoints || role == quant.GroupIndex):
		t.Class = Exact
		return nil // the tensor with the codes reports on them
	case role != quant.Codes && role != quant.Scales:
		t.Class, t.Problem = Lossy, fmt.Sprintf("differs from the source, and holds the %s of a quantised weight (%s), which no step changes", role, q.Format)
		return nil
	case exact:
		t.Class = Exact
	default:
		t.Class = Lossy
	}
	if role == quant.Scales && !same && !moved && !slices.ContainsFunc(c.steps[q.Name], func(s claimed) bool { return s.Scales }) {
		t.Problem = fmt.Sprintf("differs from the source, and no step changes the scales of %s", q.Name)
	}
	if role != quant.Codes {
		return nil
	}
	c.linearCodes(t, q.Name)
	after, ok := c.result.Weight(q.Name)
	if !ok {
		t.Problem = "the output does not store this weight as codes"
		return nil
	}
	near, f, err := c.near(q)
	if err != nil {
		t.Problem = err.Error()
		return nil
	}
	var d, reference, sourceReference difference
	for e := range q.Experts() {
		a, err := q.Read(e)
		if err != nil {
			return err
		}
		b, err := after.Read(e)
		if err != nil { // for example a scale that is not a positive number
			t.Problem = err.Error()
			return ctx.Err()
		}
		if moved {
			if b, err = claim.undo(b, a.Group); err != nil {
				t.Problem = err.Error()
				return ctx.Err()
			}
			if exact && (!slices.Equal(a.Codes, b.Codes) || !slices.Equal(a.Scales, b.Scales)) {
				t.Class, t.Problem = Lossy, "the claimed order, signs and exponents do not turn the source's codes and scales into the output's"
			}
		}
		m := &Codes{Source: a, Result: b, Reference: c.plan.Request.Reference != "", Alone: len(c.steps[q.Name]) == 1, Feedback: c.anywhere(q.Name)}
		switch {
		case near != nil:
			m.Near = func(dst []float32, n int) { f.Decode(dst, near.ReadRows(nil, e*a.N+n, 1)) }
			err = weights.Guard(near.Parts[0].File, func() error { return referenceSNR(ctx, m, &reference, &sourceReference) })
		case !m.Reference:
			m.Near = a.Row
		}
		if err == nil {
			err = c.compareCodes(ctx, t, &d, q.Name, m)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case exact:
		err = c.findMoved(ctx, t, q, after, claim)
	case moved:
		t.Relation = claim.summary("claimed")
	}
	if err != nil {
		return err
	}
	t.ReferenceSNR, t.SourceReferenceSNR = decibels(reference.signal, reference.noise), decibels(sourceReference.signal, sourceReference.noise)
	if d.changed > 0 {
		t.SNR, t.NonFinite = decibels(d.signal, d.noise), d.nonFinite
		t.ZerosAdded = d.zerosAdded
		if t.Class == Identical {
			t.Class = Rescaled
		}
	} else if t.Class == Lossy {
		t.Class = Exact // another code of the same value
	}
	c.holdSNR(t, q.Name)
	return nil
}

// lookKept compares a linear layer's unchanged codes with the reference.
func (c *claims) lookKept(ctx context.Context, t *Tensor) error {
	q, _ := c.quantised.WeightOf(t.Name)
	if q == nil || q.CanRead() != nil || !c.layout.IsLinearWeight(q) {
		t.Class = Untouched
		return nil
	}
	err := c.lookCodes(ctx, t, q, quant.Codes, true)
	t.Class = Untouched
	return err
}

// linearCodes sets whether the weight belongs to a linear layer.
func (c *claims) linearCodes(t *Tensor, weight string) {
	t.Linear = true
	if c.layout != nil {
		claim := c.layout.Claims[weight]
		t.Linear = claim != nil
		if claim != nil {
			t.Kind = claim.Kind
		}
	}
}

// compareCodes compares the values of one matrix, and checks the claims.
func (c *claims) compareCodes(ctx context.Context, t *Tensor, d *difference, weight string, m *Codes) error {
	bad := func(format string, args ...any) {
		if t.Problem == "" {
			t.Problem = fmt.Sprintf(format, args...)
		}
	}
	a, b := m.Source, m.Result
	if a.N != b.N || a.K != b.K || a.Block != b.Block || !slices.Equal(a.Zeros, b.Zeros) || !slices.Equal(a.Group, b.Group) || a.Global != b.Global {
		bad("the zero points, groups or global scale differ from the source's")
		return nil
	}
	before, after := make([]float32, a.K), make([]float32, a.K)
	for n := range a.N {
		if err := ctx.Err(); err != nil {
			return err
		}
		a.Row(before, n)
		b.Row(after, n)
		d.row(before, after)
	}
	if d.spread > 0 {
		bad("%s NaN or infinite in only one of the models", valuesAre(d.spread))
	}
	for _, s := range c.steps[weight] {
		if s.Codes == nil {
			continue
		}
		err := s.Codes(ctx, m)
		if parallel.Ended(err) {
			return err
		}
		if err != nil {
			bad("%s: %v", s.pass, err)
		}
	}
	return nil
}

// row compares a row of values.
func (d *difference) row(before, after []float32) {
	for k, v := range before {
		got := after[k]
		if v-v != 0 || got-got != 0 {
			d.nonFinite++
			if (v-v != 0) != (got-got != 0) {
				d.spread++
			}
			continue
		}
		d.signal += float64(float64(v) * float64(v))
		if got != v {
			d.off(float64(got), float64(v), 0)
		}
	}
}

// holdSNR compares a quantised weight's output SNR with the manifest's claim and with the budget.
func (c *claims) holdSNR(t *Tensor, weight string) {
	const tolerance = 0.01 // in dB; sums are in another order
	anywhere := c.anywhere(weight)
	if t.SNR != nil && t.Problem == "" && *t.SNR < leastSNR && !anywhere {
		t.Problem = fmt.Sprintf("the output SNR is %s: the codes do not represent the source's values", inDecibels(*t.SNR))
	}
	snr, against := t.SNR, ""
	if c.plan.Request.Reference != "" { // claims are relative to the reference
		snr, against = t.ReferenceSNR, " relative to the reference"
	}
	if snr == nil || t.Problem != "" {
		return
	}
	if want, ok := c.snr[weight]; ok && *snr < want-tolerance {
		t.Problem = fmt.Sprintf("the output SNR%s is %s, and the manifest claims %s", against, inDecibels(*snr), inDecibels(want))
	}
	if least := c.plan.Request.MinSNR; least != nil && t.Linear && !anywhere && !c.missed[weight] && *snr < *least-tolerance &&
		(t.SourceReferenceSNR == nil || *snr < *t.SourceReferenceSNR-tolerance) { // a recipe's budget allows the source's SNR
		t.Problem = fmt.Sprintf("the output SNR%s is %s, and the budget requires at least %s", against, inDecibels(*snr), inDecibels(*least))
	}
}

// anywhere reports whether a weight's values were chosen jointly for the layer's inputs.
func (c *claims) anywhere(weight string) bool {
	return slices.ContainsFunc(c.steps[weight], func(s claimed) bool { return s.Anywhere })
}

// PositiveZero checks the pass zeros: there is no −0, and no value changed.
var PositiveZero = &Check{Claim: func(s *plan.Step) (*Claim, error) {
	_, err := plan.Data[struct{}](s)
	return &Claim{Codes: func(_ context.Context, m *Codes) error {
		if m.Alone && !m.Reference {
			for i, code := range m.Result.Codes {
				was, is := m.Source.Book.Values[m.Source.Codes[i]], m.Result.Book.Values[code]
				if was != is && !(math.IsNaN(float64(was)) && math.IsNaN(float64(is))) {
					return fmt.Errorf("code [%d, %d] has the value %g in the output and %g in the source", i/m.Result.K, i%m.Result.K, is, was)
				}
			}
		}
		for c, v := range m.Result.Book.Values {
			if at := bytes.IndexByte(m.Result.Codes, byte(c)); v == 0 && math.Signbit(float64(v)) && at >= 0 {
				return fmt.Errorf("code [%d, %d] is −0", at/m.Result.K, at%m.Result.K)
			}
		}
		return nil
	}}, err
}}

// Scales checks the pass scales. Scales of FP8 codes are the source's times powers of two, and codes have the claimed
// size. All other scales have few mantissa bits.
var Scales = &Check{Claim: func(s *plan.Step) (*Claim, error) {
	d, err := plan.Data[struct {
		Bits int `json:"bits"`
	}](s)
	return &Claim{Scales: true, Codes: func(_ context.Context, m *Codes) error {
		if m.fp8() {
			return placedScales(m, d.Bits)
		}
		for i, s := range m.Result.Scales {
			was := s
			if m.Source != nil {
				was = m.Source.Scales[i]
			}
			if was == 0 && s == 0 {
				continue
			}
			if mant, _ := math.Frexp(float64(s)); math.Ldexp(mant, d.Bits+1) != math.Trunc(math.Ldexp(mant, d.Bits+1)) {
				return fmt.Errorf("scale %d is %g, which has more than %s", i, s, bitsOf(d.Bits, "mantissa"))
			}
			if r := s / was; r < 0.5 || r > 2 {
				return fmt.Errorf("scale %d is %g in the output and %g in the source", i, s, was)
			}
		}
		return nil
	}}, err
}}

// zeroedCodes checks that the low bits of all codes are zero: mantissa bits of floats, or bits of the distance to the
// zero point of integers. Without other steps, every value must be one of the nearest.
func zeroedCodes(m *Codes, zeroed int) error {
	r := m.Result
	nearest := map[uint8]*[256]float32{} // distance of each source code to the nearest value, by zero point
	for n := range r.N {
		for k := range r.K {
			code := int(r.Codes[n*r.K+k])
			v := r.Book.Values[code]
			if v-v != 0 {
				continue
			}
			if !m.float() {
				code -= int(r.ZeroPoint(n, k))
			}
			if code&(1<<zeroed-1) != 0 {
				return fmt.Errorf("the plan zeroes %s, and code [%d, %d] has low bits that are not zero", bitsOf(zeroed, "low"), n, k)
			}
			if !m.Alone || m.Reference || m.Source == nil {
				continue
			}
			zero := r.ZeroPoint(n, k)
			if nearest[zero] == nil {
				nearest[zero] = m.distances(zeroed, zero)
			}
			was := m.Source.Codes[n*r.K+k]
			if d := v - r.Book.Values[was]; max(d, -d) > nearest[zero][was] {
				return fmt.Errorf("code [%d, %d] has the value %g in the output and %g in the source: another code is nearer to the source's value", n, k, v, r.Book.Values[was])
			}
		}
	}
	return nil
}

// distances returns the distance of each code's value to the nearest value whose low bits are zero.
func (c *Codes) distances(zeroed int, zero uint8) *[256]float32 {
	values, all := c.Result.Book.Values, &[256]float32{}
	if c.float() {
		zero = 0
	}
	for code, v := range values {
		all[code] = float32(math.Inf(1))
		for other, w := range values {
			if d := w - v; d-d == 0 && (other-int(zero))&(1<<zeroed-1) == 0 {
				all[code] = min(all[code], max(d, -d))
			}
		}
	}
	return all
}

// gridCodes checks that the codes under each scale are multiples of a power of two near σ/s. σ is the root mean
// square of the source's values under that scale. Without other steps, no value moves by two multiples or more.
func gridCodes(m *Codes, s float64) error {
	if m.Reference {
		return nil // σ is the reference's
	}
	a, r := m.Source, m.Result
	sum, n := make([]float64, len(r.Scales)), make([]float64, len(r.Scales))
	each := func(fn func(place int, was, is float64)) {
		for row := range r.N {
			for k := range r.K {
				place, i := r.Place(row, k), row*r.K+k
				zero := float64(r.ZeroPoint(row, k))
				was, is := float64(a.Book.Values[a.Codes[i]])-zero, float64(r.Book.Values[r.Codes[i]])-zero
				if was-was == 0 {
					fn(place, was*float64(a.Scales[place])/float64(r.Scales[place]), is)
				}
			}
		}
	}
	each(func(place int, was, _ float64) { sum[place] += float64(was * was); n[place]++ })
	exp := make([]int, len(sum))
	for place, v := range sum {
		exp[place] = int(math.Floor(elementary.Log2(math.Sqrt(v/n[place])/s) + 0.499)) // nearest; a tie may go to the smaller step
	}
	var wrong error
	each(func(place int, was, is float64) {
		if wrong != nil || !(sum[place] > 0) {
			return
		}
		e := exp[place]
		if x := math.Ldexp(is, -e); x != math.Trunc(x) {
			wrong = fmt.Errorf("a code under scale %d has the value %g, which is not a multiple of 2^%d", place, is, e)
		} else if m.Alone && math.Abs(is-was) >= math.Ldexp(1, e+1) {
			wrong = fmt.Errorf("a code under scale %d has the value %g in the output and %g in the source: another multiple of 2^%d is nearer to the source's value", place, is, was, e)
		}
	})
	return wrong
}
