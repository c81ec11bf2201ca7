package verify

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// TestBudgets: an SNR may be 0.01 dB below the claim and the budget. Codes may be below the budget if the source's SNR to the reference
// is as low.
func TestBudgets(t *testing.T) {
	for _, test := range []struct {
		snr, claim, least, source float64 // in dB; 0: none
		ok                        bool
	}{
		{20, 0, 0, 0, true},
		{20, 20, 20, 0, true},
		{20, 20.009, 0, 0, true},
		{20, 20.011, 0, 0, false},
		{20, 0, 20.009, 0, true},
		{20, 0, 20.011, 0, false},
		{20, 0, 30, 20, true},
		{20, 0, 30, 20.009, true},
		{20, 0, 30, 20.011, false},
	} {
		given := func(v float64) *float64 {
			if v == 0 {
				return nil
			}
			return &v
		}
		c := &claims{plan: &plan.Plan{}, snr: map[string]float64{}, steps: map[string][]claimed{"w": {{"p", &Claim{}}}}}
		c.plan.Request.MinSNR = given(test.least)
		if test.claim != 0 {
			c.snr["w"] = test.claim
		}
		x := &Tensor{Name: "w", Linear: true, SNR: &test.snr}
		if test.source == 0 {
			testmodel.OK(t, c.holdClaims(t.Context(), x, &pair{}, difference{}, false))
			if (x.Problem == "") != test.ok {
				t.Errorf("values, %+v: %q", test, x.Problem)
			}
			x.Problem = ""
		} else {
			c.plan.Request.Reference = "r"
			x.ReferenceSNR, x.SourceReferenceSNR = &test.snr, &test.source
		}
		if c.holdSNR(x, "w"); (x.Problem == "") != test.ok {
			t.Errorf("codes, %+v: %q", test, x.Problem)
		}
	}
	for snr, ok := range map[float64]bool{-0.5: false, 0: true, 0.5: true} {
		x := &Tensor{SNR: &snr}
		if (&claims{plan: &plan.Plan{}}).holdSNR(x, "w"); (x.Problem == "") != ok {
			t.Errorf("codes at %v dB: %q", snr, x.Problem)
		}
	}
}

// TestMadeOfAnotherShape: a quantised weight must have the shape of the source's matrix.
func TestMadeOfAnotherShape(t *testing.T) {
	i := slices.IndexFunc(testmodel.Quantisations, func(q testmodel.Quantisation) bool { return q.Name == "compressed fp8 channel" })
	d, err := quant.Describe(testmodel.Open(t, testmodel.Quantised(t, testmodel.Quantisations[i], testmodel.With{})))
	testmodel.OK(t, err)
	w := d.Weights[0]
	values, err := w.Values(t.Context(), 1)
	testmodel.OK(t, err)
	cols := w.Shape[1]
	for more, ok := range map[int]bool{-1: false, 0: true, 1: false} {
		a := matrixOf(weights.F32, w.Shape[0]+more, cols, func(n, k int) float32 { return values[min(n, w.Shape[0]-1)*cols+k] })
		x, err := (&claims{plan: &plan.Plan{}}).lookMade(t.Context(), a, w)
		testmodel.OK(t, err)
		if (x.Problem == "") != ok {
			t.Errorf("%d more rows: %q", more, x.Problem)
		}
	}
}

// TestBitsZeroed: the number of zeroed bits does not count bits that are zero in the source.
func TestBitsZeroed(t *testing.T) {
	f := testmodel.FormatOf(weights.BF16)
	low := func(zero int) weights.Tensor { // 1.5 with the lowest bit that is not zero
		return matrixOf(weights.BF16, 2, 2, func(_, _ int) float32 { return f.Value(0x3FC0 | 1<<zero) })
	}
	for _, test := range [][3]int{{0, 3, 3}, {1, 3, 2}, {2, 2, 0}, {3, 1, 0}} {
		x := &Tensor{}
		if x.fill(newPair(low(test[0]), low(test[1]), f), difference{changed: 1}); x.BitsZeroed != test[2] {
			t.Errorf("%d zero bits become %d: %d zeroed bits, want %d", test[0], test[1], x.BitsZeroed, test[2])
		}
	}
}

// TestFoldsInPart: a norm may be folded into all its layers or into none.
func TestFoldsInPart(t *testing.T) {
	m := testmodel.Tiny(t, "gpt2-tiny", weights.BF16)
	layout := testmodel.LayoutOf(t, m)
	var norm *arch.Claim
	steps, one, zero := map[string][]claimed{}, 1.0, 0.0
	fold := func(name string, f *Fold) { steps[name] = []claimed{{"fold", &Claim{Fold: f}}} }
	for _, l := range layout.Claims {
		if l.Name != "transformer.h.0.attn.c_attn.weight" {
			continue
		}
		norm = layout.Claims[l.Norm.Weight]
		fold(l.Norm.Weight, &Fold{Fill: &one})
		fold(l.Norm.Bias, &Fold{Fill: &zero})
		fold(l.Name, &Fold{Scale: l.Norm.Weight})
		fold(l.Bias, &Fold{Bias: l.Norm.Bias, Weight: l.Name})
	}
	if norm == nil || len(steps) != 4 {
		t.Fatalf("%d steps fold the norm", len(steps))
	}
	if err := (&claims{layout: layout, steps: steps}).wholeFolds(); err != nil {
		t.Error(err)
	}
	for name, step := range steps {
		only := map[string][]claimed{name: step}
		if err := (&claims{layout: layout, steps: only}).wholeFolds(); err == nil || !strings.Contains(err.Error(), "folded only in part: the plan has 1 of 4 steps") {
			t.Errorf("only %s: %v", name, err)
		}
		without := map[string][]claimed{}
		for other, s := range steps {
			if other != name {
				without[other] = s
			}
		}
		if err := (&claims{layout: layout, steps: without}).wholeFolds(); err == nil || !strings.Contains(err.Error(), "the plan has 3 of 4 steps") {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// TestWrongExtras: an epilogue's tensor must be a vector of F32 that holds the shift for every output.
func TestWrongExtras(t *testing.T) {
	m := testmodel.Tiny(t, "gpt2-tiny", weights.BF16)
	c := &claims{src: m, layout: testmodel.LayoutOf(t, m)}
	const layer = "transformer.h.0.mlp.c_fc.weight" // stored as [inputs, outputs]
	shape := testmodel.TensorOf(t, m, layer).Shape
	n := shape[1]
	if n == shape[0] {
		t.Fatal("the layer is square")
	}
	for what, test := range map[string]struct {
		d     weights.DType
		shape []int
		value func(i int) float32
		ok    bool
	}{
		"right":        {weights.F32, []int{n}, func(int) float32 { return 0.5 }, true},
		"another type": {weights.BF16, []int{n}, func(int) float32 { return 0.5 }, false},
		"inputs":       {weights.F32, []int{shape[0]}, func(int) float32 { return 0.5 }, false},
		"two axes":     {weights.F32, []int{n, 1}, func(int) float32 { return 0.5 }, false},
		"fewer":        {weights.F32, []int{n - 1}, func(int) float32 { return 0.5 }, false},
		"last": {weights.F32, []int{n}, func(i int) float32 {
			if i == n-1 {
				return 0.25
			}
			return 0.5
		}, false},
	} {
		x := matrixOf(test.d, 1, test.shape[0], func(_, k int) float32 { return test.value(k) })
		x.Shape = test.shape
		if wrong := c.wrongExtra(x, layer, 0.5); (wrong == "") != test.ok {
			t.Errorf("%s: %q", what, wrong)
		}
	}
}

// TestClaimedSNR: a plan's SNR of a whole layer is claimed as it is. An SNR of sampled rows may be missed by 1 dB, and is claimed up to
// 50 dB.
func TestClaimedSNR(t *testing.T) {
	m := testmodel.Tiny(t, "gpt2-tiny", weights.BF16)
	layout := testmodel.LayoutOf(t, m)
	whole, low, high := 70.0, 20.0, 60.0
	p := &plan.Plan{DropIn: true, Predictions: []plan.Prediction{{Tensor: "whole", SNR: &whole}, {Tensor: "low", SampleSNR: &low}, {Tensor: "high", SampleSNR: &high}, {Tensor: "none"}}}
	p.Model.Family = layout.Family
	c, err := newClaims(m, layout, nil, nil, p, nil)
	testmodel.OK(t, err)
	if want := map[string]float64{"whole": 70, "low": 19, "high": 50}; !maps.Equal(c.snr, want) {
		t.Errorf("%v, want %v", c.snr, want)
	}
}

// TestInfinityBeforeZeros: with an added constant, values before the choice of zeros are rounded to the tensor's type, and infinity is
// kept.
func TestInfinityBeforeZeros(t *testing.T) {
	inf := float32(math.Inf(1))
	x := matrixOf(weights.BF16, 1, 4, func(_, k int) float32 { return []float32{1, 256, 2, 3}[k] })
	f := testmodel.FormatOf(weights.BF16)
	f.SetElem(x.Data, 2, f.ExpMask())
	f.SetElem(x.Data, 3, f.SignMask()|f.ExpMask())
	p := newPair(x, x, f)
	e, got := &expected{p: p, im: &image{}, add: 0.5, source: make([]float32, 4)}, make([]float32, 4)
	if e.stored(got, 0); !slices.Equal(got, []float32{1.5, 256, inf, -inf}) {
		t.Errorf("%v", got)
	}
}

// TestDistances: the distance of each code to the nearest code whose distance to the zero point has zeroed low bits.
func TestDistances(t *testing.T) {
	c := &Codes{Result: someCodes(32)["zero points"]}
	for zero, want := range map[uint8][]float32{
		7: {3, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0}, // 3, 7, 11, 15
		8: {0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 3}, // 0, 4, 8, 12
	} {
		if got := c.distances(2, zero)[:16]; !slices.Equal(got, want) {
			t.Errorf("zero point %d: %v, want %v", zero, got, want)
		}
	}
}

// TestReferenceOfAnotherShape: only an unquantised weight of the same name and shape is a reference.
func TestReferenceOfAnotherShape(t *testing.T) {
	m := testmodel.Tiny(t, "llama-tiny", weights.BF16)
	c := &claims{reference: quant.Group(m, nil)}
	const name = "model.layers.0.mlp.up_proj.weight"
	shape := testmodel.TensorOf(t, m, name).Shape
	for what, test := range map[string]struct {
		q  *quant.Quantised
		ok bool
	}{
		"same":          {&quant.Quantised{Name: name, Shape: shape}, true},
		"another name":  {&quant.Quantised{Name: "x", Shape: shape}, false},
		"another shape": {&quant.Quantised{Name: name, Shape: []int{shape[1], shape[0]}}, false},
	} {
		if w, _, err := c.near(test.q); (err == nil) != test.ok || (w == nil) == test.ok {
			t.Errorf("%s: %v", what, err)
		}
	}
	i := slices.IndexFunc(testmodel.Quantisations, func(q testmodel.Quantisation) bool { return q.Name == "compressed fp8 channel" })
	coded := testmodel.Open(t, testmodel.Quantised(t, testmodel.Quantisations[i], testmodel.With{}))
	d, err := quant.Describe(coded)
	testmodel.OK(t, err)
	if _, _, err := (&claims{reference: quant.Group(coded, d)}).near(d.Weights[0]); err == nil {
		t.Error("a quantised weight is a reference")
	}
}

// TestSectionAtTheBeginning: a card may begin with the section of a conversion.
func TestSectionAtTheBeginning(t *testing.T) {
	const section = "<!-- lowtoggle: begin -->\nconverted\n<!-- lowtoggle: end -->\n"
	for _, card := range []string{section + "# Title\n", section + section + "# Title\n", "# Title\n" + section} {
		if own := ownLines(card); !slices.Equal(own, []string{"# Title"}) {
			t.Errorf("%q: %q", card, own)
		}
	}
}

// TestNegativeZeroAnywhere: a code of −0 is seen in every place.
func TestNegativeZeroAnywhere(t *testing.T) {
	source := someCodes(150)["fp8"]
	for i := range source.Codes {
		if source.Codes[i] == 0x80 {
			source.Codes[i] = 0
		}
	}
	for i := range source.Codes {
		result := source.Clone()
		result.Codes[i] = 0x80
		err := claimOf(t, PositiveZero, `{}`).Codes(t.Context(), &Codes{Source: result, Result: result, Alone: true})
		if want := fmt.Sprintf("code [%d, %d] is −0", i/result.K, i%result.K); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestAddedZeros: a zero is added if the value, with the added constant, is not zero.
func TestAddedZeros(t *testing.T) {
	for _, test := range []struct {
		v, add float64
		zeros  int
	}{{2, 0, 1}, {2, -2, 0}, {2, 2, 1}, {0, 1, 1}} {
		d := &difference{}
		if d.off(0, test.v, test.add); d.zerosAdded != test.zeros {
			t.Errorf("%+v: %d zeros added", test, d.zerosAdded)
		}
	}
}

// TestRoutersOfAllBlocks: the router of the first block is a router too.
func TestRoutersOfAllBlocks(t *testing.T) {
	c := &claims{layout: testmodel.LayoutOf(t, testmodel.Tiny(t, "mixtral-tiny", weights.BF16))}
	found := map[int]bool{}
	for name, claim := range c.layout.Claims {
		is := strings.HasSuffix(name, ".gate.weight")
		if is {
			found[claim.Layer] = true
		}
		if c.isRouter(name) != is {
			t.Errorf("%s is a router: %v", name, !is)
		}
	}
	if !found[0] || !found[1] {
		t.Errorf("the model has routers in blocks %v", found)
	}
}

// TestCodesOfAnotherLayout: codes whose shape, blocks, zero points, groups or global scale are not the source's are refused.
func TestCodesOfAnotherLayout(t *testing.T) {
	a := someCodes(32)["zero points"]
	a.Group = []int32{0, 0, 0, 1, 1, 1}
	for what, change := range map[string]func(b *quant.Matrix){
		"nothing": nil,
		"N":       func(b *quant.Matrix) { b.N-- },
		"K":       func(b *quant.Matrix) { b.K-- },
		"Block":   func(b *quant.Matrix) { b.Block[1]++ },
		"Zeros":   func(b *quant.Matrix) { b.Zeros[1]++ },
		"Group":   func(b *quant.Matrix) { b.Group[5] = 0 },
		"Global":  func(b *quant.Matrix) { b.Global = 2 },
	} {
		b, x := a.Clone(), &Tensor{}
		b.Zeros, b.Group = slices.Clone(a.Zeros), slices.Clone(a.Group)
		if change != nil {
			change(b)
		}
		testmodel.OK(t, (&claims{}).compareCodes(t.Context(), x, &difference{}, "w", &Codes{Source: a, Result: b}))
		if (x.Problem == "") != (change == nil) {
			t.Errorf("%s: %q", what, x.Problem)
		}
	}
}

// TestFoldedBiasOfAnotherLayer: the bias and the weight of a fold must have the same outputs.
func TestFoldedBiasOfAnotherLayer(t *testing.T) {
	m := testmodel.Tiny(t, "gpt2-tiny", weights.BF16)
	c := &claims{src: m, layout: testmodel.LayoutOf(t, m)}
	const bias, norm = "transformer.h.0.attn.c_attn.bias", "transformer.h.0.ln_1.bias"
	for weight, ok := range map[string]bool{"transformer.h.0.attn.c_attn.weight": true, "transformer.h.0.mlp.c_fc.weight": false, "transformer.h.0.attn.c_proj.weight": false, norm: false, "none": false} {
		if _, err := c.foldedBias(t.Context(), bias, &Fold{Bias: norm, Weight: weight}); (err == nil) != ok {
			t.Errorf("%s: %v", weight, err)
		}
	}
}

// TestShiftedValuesAreUnchanged: values that are the source's plus the added constant do not count as changed.
func TestShiftedValuesAreUnchanged(t *testing.T) {
	matrix := func(add float32) weights.Tensor {
		return matrixOf(weights.F32, 2, 3, func(n, k int) float32 { return float32(n+k) + add })
	}
	d, err := newPair(matrix(0), matrix(0.5), testmodel.FormatOf(weights.F32)).compare(t.Context(), &image{}, nil, 0.5, nil)
	testmodel.OK(t, err)
	if d.changed != 0 || d.noise != 0 || d.signal != 0+1+4+1+4+9 {
		t.Errorf("%+v", d)
	}
}

// TestPlacedScaleOfZeros: a scale whose codes are all zero may be any power of two times the source's.
func TestPlacedScaleOfZeros(t *testing.T) {
	source := someCodes(150)["fp8"]
	for i := range source.Codes {
		if source.Place(i/source.K, i%source.K) == 1 {
			source.Codes[i] = 0
		}
	}
	for factor, ok := range map[float32]bool{1: true, 4: true, 3: false, 0.5: false} {
		result := source.Clone()
		result.Scales = slices.Clone(source.Scales)
		result.Scales[1] *= factor
		for i := range result.Scales {
			if i != 1 { // other scales have no codes of a checked size
				source.Scales[i], result.Scales[i] = 0, 0
			}
		}
		if err := placedScales(&Codes{Source: source, Result: result, Near: source.Row}, 3); (err == nil) != ok {
			t.Errorf("scale times %g: %v", factor, err)
		}
	}
}
