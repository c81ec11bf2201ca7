package component

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// TestVerdict: a model advises if its error on unseen kernels below the cap is at most half of the best naive
// model's, and if it predicts similar kernels well.
func TestVerdict(t *testing.T) {
	m := fitted(t, usualCard, true, nil)
	if err := m.Verdict(); err != nil {
		t.Errorf("tested by its own kernels: %v", err)
	}
	for _, c := range []struct {
		span    *Span
		advises bool
		want    string
	}{
		{&Span{Kernels: 9, Mean: 0.1, Naive: []float64{0.3, 0.2, 0.05}}, true, ""}, // utilisation is not a naive model
		{&Span{Kernels: 9, Mean: 0.11, Naive: []float64{0.3, 0.2, 0.9}}, false, "unseen kernels is 11.0 %; it must be at most half of the best naive model's error of 20.0 %"},
		{&Span{Kernels: 9, Mean: 0.11, Naive: []float64{0.2, 0.3, 0.9}}, false, "the best naive model's error of 20.0 %"},
		{&Span{Kernels: 7, Mean: 0.01, Naive: []float64{0.3, 0.3, 0.3}}, false, "too few unseen kernels between 150 and 690 W test the model: 7; at least 8 are needed"},
		{nil, false, "test the model: 0; at least 8 are needed"},
	} {
		judged := *m
		judged.Quality = &Quality{Span: c.span}
		if err := judged.Verdict(); (err == nil) != c.advises || errors.Is(err, ErrUnfit) == c.advises || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.span, err)
		}
	}
}

// TestTrust: advice on a kind of kernels requires unseen kernels of this kind below the cap, with errors within 5 %.
func TestTrust(t *testing.T) {
	m := fitted(t, usualCard, true, nil)
	product, err := Gemm{Type: arith.BF16, M: 3000, N: 5000, K: 7000, Bits: 1, Moved: 1}.Kernel("product", card)
	if err != nil {
		t.Fatal(err)
	}
	cold, err := Gemm{Type: arith.BF16, M: 16, N: 5000, K: 7000, Bits: 1, Moved: 1, Cold: true}.Kernel("cold", card)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		k      Kernel
		change func(*Prediction) // changes unseen kernels of this kind
		want   string
	}{
		"good":    {product, func(*Prediction) {}, ""},
		"far off": {product, func(p *Prediction) { p.Predicted.Watts = 1.06 * p.Reading.Watts }, "unseen kernels of bf16 limited by arithmetic is 6.0 %"},
		"near":    {product, func(p *Prediction) { p.Predicted.Watts = 0.96 * p.Reading.Watts }, ""},
		"at cap":  {product, func(p *Prediction) { p.Spans = false }, "too few unseen kernels of bf16 limited by arithmetic between 150 and 690 W test the model: 0; at least 2"},
		"cold":    {cold, func(p *Prediction) { p.Predicted.Watts = 1.2 * p.Reading.Watts }, "2 unseen kernels of bf16 limited by memory is 20.0 %"},
	} {
		judged := *m
		judged.unseen = slices.Clone(m.unseen)
		alike, _ := m.alike([]Kernel{c.k})
		n := 0
		for i := range judged.unseen {
			if p := &judged.unseen[i]; alike(&p.Reading.Kernel) {
				n++
				c.change(p)
			}
		}
		a, err := judged.Advise("phase", []Kernel{c.k})
		if n < 2 || (err == nil) != (c.want == "") || (a == nil) != (c.want != "") || err != nil && !(errors.Is(err, ErrUnfit) && strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s, %d alike: %v", name, n, err)
		}
	}
}

// TestSplits: splits are withheld if the mean error of held-out kernels is too large. Without held-out kernels, the
// fit's own kernels count, each left out in turn.
func TestSplits(t *testing.T) {
	for off, shown := range map[float64]bool{0: true, 0.08: true, 0.15: true, 0.2: false} {
		for _, q := range []Quality{{HeldOut: 1, HeldOutMean: off}, {HeldOut: 1, HeldOutMean: off, LeftOut: 1, Mean: 1}, {LeftOut: 1, Mean: off}} {
			m := Model{Quality: &q}
			if err := m.Splits(); (err == nil) != shown {
				t.Errorf("%+v: %v", q, err)
			}
		}
	}
	for _, q := range []*Quality{nil, {}} {
		if m := (Model{Quality: q}); m.Splits() == nil || m.Verdict() == nil {
			t.Error("a model without unseen kernels may split")
		}
	}
	if a, err := new(Model).Advise("prefill", nil); err == nil {
		t.Errorf("without a fit: %+v", a)
	}
	for simulated, advised := range map[bool]bool{false: true, true: false} {
		err := (&Model{Simulated: simulated, Quality: new(Quality)}).Splits()
		if strings.Contains(err.Error(), "warm card without other processes") != advised {
			t.Errorf("simulated %v: %v", simulated, err)
		}
	}
}
