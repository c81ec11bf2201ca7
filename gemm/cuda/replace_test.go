package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestReplace multiplies by the new operands, in every copy and with padding, while another batch
// runs.
func TestReplace(t *testing.T) {
	for _, o := range []Options{{Repeat: 1}, {Repeat: 1, Cold: true}, {Repeat: 1, Cold: true, Stack: 3}} {
		c := newCard(t)
		d := openFake(t, c)
		b, other := batch(t, d, o, small...), batch(t, d, o, small...)
		if err := other.Start(1000); err != nil {
			t.Fatal(err)
		}
		for i, p := range small {
			x, w := operands(p, 99)
			if err := b.Replace(t.Context(), i, x, w); err != nil {
				t.Fatal(err)
			}
			l := b.layers[i]
			for k, at := range l.w {
				l.w[0] = at // what Check multiplies by
				if _, err := b.check(l, true); err != nil {
					t.Errorf("%+v: product %d, copy %d: %v", o, i, k, err)
				}
			}
		}
		if err := other.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		for _, b := range []*Batch{b, other} {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestReplaceRefuses(t *testing.T) {
	c := newCard(t)
	b := batch(t, openFake(t, c), Options{Repeat: 1}, small...)
	defer b.Close()
	x, w := operands(small[0], 1)
	if err := b.Replace(t.Context(), 2, x, w); err == nil || !strings.Contains(err.Error(), "no product 2") {
		t.Error(err)
	}
	if err := b.Replace(t.Context(), 1, x, w); err == nil || !strings.Contains(err.Error(), "batch test: layer 1: product 4x5x6") {
		t.Error(err)
	}
	w.Data[0], w.Data[1] = 0xff, 0xff
	if err := b.Replace(t.Context(), 0, x, w); !errors.Is(err, gemm.ErrNotFinite) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x, w = operands(gemm.Problem{M: 8, N: 8, K: 8, Type: arith.BF16}, 1)
	whole := batch(t, b.device, Options{Repeat: 1}, gemm.Problem{M: 8, N: 8, K: 8, Type: arith.BF16})
	defer whole.Close()
	if err := whole.Replace(ctx, 0, x, w); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestOtherForm: codes whose scales need another kernel than the batch has are refused, also those in the same format.
func TestOtherForm(t *testing.T) {
	int4 := func(scale byte) gemm.Matrix { // the high byte of a BF16 scale
		c := randomCodes(8, 128, 64, false, false, weights.BF16)
		c.Scales[3] = scale
		return gemm.Matrix{Codes: c}
	}
	mxfp4 := func(scale byte) gemm.Matrix {
		c := randomCodes(8, 128, 32, true, false, weights.F8E8M0)
		c.Scales[3] = scale
		return gemm.Matrix{Codes: c}
	}
	for _, c := range []struct {
		name   string
		tokens int
		from   gemm.Matrix
		to     gemm.Matrix
		want   error
	}{
		{"alike", fewTokens, int4(0x3c), int4(0x3d), nil},
		{"too large for few tokens", fewTokens, int4(0x3c), int4(0x46), ErrOtherForm},
		{"large with many tokens", fewTokens + 1, int4(0x3c), int4(0x46), nil},
		{"another format", fewTokens, int4(0x3c), mxfp4(120), ErrOtherForm},
		{"E8M0", fewTokens + 1, mxfp4(120), mxfp4(mostE8M0), nil},
		{"E8M0, too large", fewTokens + 1, mxfp4(120), mxfp4(mostE8M0 + 1), ErrOtherForm},
	} {
		l := &layer{Product: Product{Problem: gemm.Problem{M: c.tokens}, W: c.from}}
		if err := l.SameForm(Product{Problem: l.Problem, W: c.to}); err != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// TestCopy: after Copy, every copy of a batch multiplies by the other batch's operands and scales at its own addresses.
func TestCopy(t *testing.T) {
	for _, o := range []Options{{Repeat: 1}, {Repeat: 1, Cold: true, Stack: 3}} {
		d := openFake(t, newCard(t))
		make := func(seed uint64) *Batch {
			var products []Product
			for i, p := range small {
				x, w := operands(p, seed+uint64(i))
				products = append(products, Product{Name: fmt.Sprint("layer ", i), Problem: p, X: x, W: w})
			}
			b, err := d.NewBatch(t.Context(), "test", products, o)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		b, from := make(1), make(100)
		if err := b.Copy(from); err != nil {
			t.Fatal(err)
		}
		for i, l := range b.layers {
			if !slices.Equal(l.W.Data, from.layers[i].W.Data) || l.w[0] == from.layers[i].w[0] {
				t.Fatalf("layer %d has other weights, or the other batch's addresses", i)
			}
			for k, at := range l.w {
				l.w[0] = at // what Check multiplies by
				if _, err := b.check(l, true); err != nil {
					t.Errorf("%+v: product %d, copy %d: %v", o, i, k, err)
				}
			}
		}
		faster := make(1)
		faster.layers[1].Problem.Type = arith.FP8
		if err := b.Copy(faster); !errors.Is(err, ErrOtherForm) {
			t.Errorf("another type: %v", err)
		}
		other := batch(t, d, Options{Repeat: 1}, small[0])
		if err := b.Copy(other); err == nil || err.Error() != "batch test: its products or options differ from those of batch test" {
			t.Error(err)
		}
		for _, b := range []*Batch{b, from, faster, other} {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
