package operand

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// TestQuantisedLayersAreNoOperands: without Options.Quantised only unquantised layers are taken, of a known family or not.
// A tensor of codes may be named.
func TestQuantisedLayersAreNoOperands(t *testing.T) {
	for _, q := range testmodel.Quantisations {
		for _, fields := range []string{"", `{"model_type": "x", "architectures": ["X"]}`} {
			dir := testmodel.Quantised(t, q, testmodel.With{Fields: fields})
			set := NewSet(Options{})
			layers, skipped, err := set.Linear(testmodel.Open(t, dir))
			if err != nil || len(layers) != 1 || layers[0].Name != "lm_head.weight" || len(skipped) > 0 {
				t.Errorf("%s: %d layers, skipped %q (%v)", q.Name, len(layers), skipped, err)
			}
			testmodel.OK(t, set.Close())
		}
	}
	fp8 := testmodel.Quantisations[0]
	dir := testmodel.Quantised(t, fp8, testmodel.With{Head: true, Config: strings.Replace(fp8.Config, `["lm_head"]`, `[]`, 1)})
	set := NewSet(Options{Tokens: 16})
	defer set.Close()
	_, err := set.Products(t.Context(), MustParse(dir+":"))
	testmodel.WantError(t, err, "the model has no linear layers", "15 weights in fp8, per tensor (compressed-tensors)")
	products, err := set.Products(t.Context(), MustParse(dir+":lm_head.weight"))
	if err != nil || len(products) != 1 || products[0][0].W.Rows != 64 {
		t.Errorf("%v (%v)", products, err)
	}
}

// TestQuantisedOperands: quantised layers are matrices as the tensor cores read them, the same in whole and in blocks. An
// unreadable weight is skipped.
func TestQuantisedOperands(t *testing.T) {
	for _, q := range testmodel.Quantisations {
		for _, fields := range []string{"", `{"model_type": "x", "architectures": ["X"]}`} {
			m := testmodel.Open(t, testmodel.Quantised(t, q, testmodel.With{Fields: fields}))
			set := NewSet(Options{Quantised: true})
			layers, skipped, err := set.Linear(m)
			if err != nil || len(layers)+len(skipped) != 15 || len(layers) != 1 && len(layers) != 15 {
				t.Fatalf("%s: %d layers, skipped %q (%v)", q.Name, len(layers), skipped, err)
			}
			for _, l := range layers {
				if (l.Name == "lm_head.weight") != (l.Format == nil) {
					t.Errorf("%s: %s has format %v", q.Name, l.Name, l.Format)
				}
			}
			if len(layers) == 15 {
				checkOperand(t, q, m, layers)
			}
			testmodel.OK(t, set.Close())
		}
	}
}

func checkOperand(t *testing.T, q testmodel.Quantisation, m *weights.Model, layers []Layer) {
	t.Helper()
	set := NewSet(Options{Quantised: true})
	defer set.Close()
	same, err := set.Same(m, layers)
	testmodel.OK(t, err)
	resolved, err := set.resolved(Of(m))
	testmodel.OK(t, err)
	const name = "model.layers.0.mlp.down_proj.weight"
	w, _ := resolved.quantised.Weight(name)
	values, err := w.Read(0)
	testmodel.OK(t, err)
	global := values.Global
	if values.Divide {
		global = 1 / global
	}
	values.Global = 1
	if w.Operand() == weights.BF16 {
		values.Scales = rounded(values.Scales)
	}
	for i, l := range layers {
		if l.Name != name {
			continue
		}
		if !l.W.SameBytes(same[i].W) || l.W.SameBytes(layers[(i+1)%len(layers)].W) {
			t.Errorf("%s: %s is not the same twice, or the same as another layer", q.Name, name)
		}
		whole, err := l.W.Whole(t.Context())
		testmodel.OK(t, err)
		block, err := l.W.Block(t.Context(), 5, 7, 64, 30)
		if err != nil || whole.Rows != 128 || whole.Cols != 256 || !bytes.Equal(block, cut(whole, 5, 7, 64, 30)) {
			t.Errorf("%s: %d × %d; a block differs (%v)", q.Name, whole.Rows, whole.Cols, err)
		}
		if (whole.Codes != nil) != (whole.DType == weights.BF16) || (whole.Scales != nil) == (whole.DType == weights.BF16) {
			t.Errorf("%s: a matrix of %s with codes %v and scales %v", q.Name, whole.DType, whole.Codes, whole.Scales)
		}
		if s := whole.Scales; s != nil && s.Values[99/s.Rows*((255/s.Cols)+1)+200/s.Cols] != values.Scale(99, 200)*global {
			t.Errorf("%s: another scale of row 99 and column 200", q.Name)
		}
		checkPacked(t, q, l, values)
		f := testmodel.FormatOf(whole.DType)
		for at := range 128 * 256 {
			n, k := at/256, at%256
			got, want := f.Value(f.Elem(whole.Data, at)), values.Value(n, k)
			switch whole.DType {
			case weights.BF16:
				want = f.Value(f.FromValue(want))
			case weights.I8:
				want = float32(int(values.Codes[at]) - 128)
			default:
				want = values.Book.Values[values.Codes[at]]
			}
			if values.Group == nil && got != want {
				t.Fatalf("%s: row %d, column %d is %v, want %v", q.Name, n, k, got, want)
			}
		}
	}
}

// rounded are values in BF16.
func rounded(values []float32) []float32 {
	f := testmodel.FormatOf(weights.BF16)
	all := make([]float32, len(values))
	for i, v := range values {
		all[i] = f.Value(f.FromValue(v))
	}
	return all
}

// TestBadScales: a scale that is no positive number is an error before a product is predicted.
func TestBadScales(t *testing.T) {
	for _, q := range testmodel.Quantisations {
		if q.Name != "compressed fp8 channel" && q.Name != "pack-quantized" {
			continue
		}
		dir := testmodel.Quantised(t, q, testmodel.With{})
		const scale = "model.layers.1.mlp.up_proj.weight_scale"
		testmodel.Edit(t, dir, func(info weights.Info, data []byte) {
			if info.Name == scale {
				data[7] |= 0x80
			}
		})
		set := NewSet(Options{Quantised: true})
		layers, _, err := set.Linear(testmodel.Open(t, dir))
		testmodel.OK(t, err)
		for _, l := range layers {
			if l.Name != "model.layers.1.mlp.up_proj.weight" {
				continue
			}
			_, err := l.W.Block(t.Context(), 0, 1, 0, 8)
			testmodel.WantError(t, err, scale, "not a positive number")
			_, err = l.W.Whole(t.Context())
			testmodel.WantError(t, err, scale, "not a positive number")
		}
		testmodel.OK(t, set.Close())
	}
}

// checkPacked compares the packed codes of a layer with its codes. Only four-bit codes that kernels dequantise have them.
func checkPacked(t *testing.T, q testmodel.Quantisation, l Layer, values *quant.Matrix) {
	t.Helper()
	p := l.packed()
	if four := len(values.Book.Values) == 16; (p != nil) != four {
		t.Errorf("%s: %d values of a code, packed codes %v", q.Name, len(values.Book.Values), p != nil)
	}
	if p == nil {
		return
	}
	data, err := p.Block(t.Context(), 3, 2, 10, 5)
	testmodel.OK(t, err)
	for i, b := range data {
		at := (3+i/5)*values.K + 2*(10+i%5)
		if b&15 != values.Codes[at] || b>>4 != values.Codes[at+1] {
			t.Fatalf("%s: byte %d of the block is %#x, codes are %d and %d", q.Name, i, b, values.Codes[at], values.Codes[at+1])
		}
	}
}
