package forward_test

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/internal/reference"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// decoderOf makes a decoder of a model whose checkpoint may be quantised.
func decoderOf(t testing.TB, m *weights.Model) *forward.Decoder {
	t.Helper()
	d, err := forward.New(m, testmodel.LayoutOf(t, m))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// sameAsDequantised compares the losses of a quantised model with its unquantised copy's, bit for bit.
func sameAsDequantised(t *testing.T, name string, m *weights.Model, transposed func(string) bool) {
	t.Helper()
	plain := testmodel.Open(t, testmodel.Dequantised(t, m, transposed))
	d := decoderOf(t, m)
	tokens := sequences(d.Vocabulary(), 9, 14)
	want := run(t, decoderOf(t, plain), forward.Stored(plain), tokens)
	if got := run(t, d, forward.Stored(m), tokens); !cmp.Equal(want, got) {
		t.Errorf("%s: the loss is %v, and that of the dequantised copy %v", name, got.Loss(), want.Loss())
	}
	rows, err := reference.Run(plain, reference.Inputs{Tokens: tokens[0]})
	if err != nil {
		t.Fatal(err)
	}
	nats := 0.0
	for i, row := range rows[:len(rows)-1] {
		sum := 0.0
		for _, v := range row {
			sum += math.Exp(v - slices.Max(row))
		}
		nats += math.Log(sum) + slices.Max(row) - row[tokens[0][i+1]]
	}
	got := 0.0
	for _, v := range want.Nats[0] {
		got += v
	}
	if math.Abs(got-nats) > 1e-4*math.Abs(nats) {
		t.Errorf("%s: the losses of a sequence sum to %v, in float64 to %v", name, got, nats)
	}
}

// TestQuantisedFormats: a model of every format computes with the values of its codes.
func TestQuantisedFormats(t *testing.T) {
	n := 0
	for _, q := range testmodel.Quantisations {
		m := testmodel.Open(t, testmodel.Quantised(t, q, testmodel.With{Keep: []string{"layers.0.mlp.up"}}))
		w, ok := testmodel.LayoutOf(t, m).Quantised.Weight("model.layers.1.mlp.up_proj.weight")
		if !ok {
			t.Fatalf("%s: the layer is not quantised", q.Name)
		}
		if w.CanRead() != nil {
			_, err := forward.New(m, testmodel.LayoutOf(t, m))
			testmodel.WantError(t, err, "the checkpoint is quantised, and ", "the model's loss cannot be computed")
			continue
		}
		n++
		sameAsDequantised(t, q.Name, m, nil)
	}
	if n < 12 {
		t.Errorf("only %d formats were computed", n)
	}
}

// TestUnlistedLayersAreComputed: the layer is stored unquantised although the config says that it is quantised.
func TestUnlistedLayersAreComputed(t *testing.T) {
	dir := testmodel.Quantised(t, testmodel.Quantisations[0], testmodel.With{Keep: []string{"layers.0.mlp"}, Unlisted: true})
	m := testmodel.Open(t, dir)
	listed := testmodel.Open(t, testmodel.Quantised(t, testmodel.Quantisations[0], testmodel.With{Keep: []string{"layers.0.mlp"}}))
	tokens := sequences(64, 9)
	if got, want := run(t, decoderOf(t, m), forward.Stored(m), tokens), run(t, decoderOf(t, listed), forward.Stored(listed), tokens); !cmp.Equal(got, want) {
		t.Errorf("the loss is %v, want %v", got.Loss(), want.Loss())
	}
}

// TestQuantisedFamilies: all linear layers of every family are FP8, including the experts'.
func TestQuantisedFamilies(t *testing.T) {
	computed := 0
	for _, name := range synth.Names() {
		if !strings.HasSuffix(name, "-tiny") {
			continue
		}
		dir := testmodel.Folder(t, testmodel.Config(t, name, ""), synth.Options{Seed: 1})
		plain := testmodel.Open(t, dir)
		layout := testmodel.LayoutOf(t, plain)
		if _, err := forward.New(plain, layout); err != nil {
			continue
		}
		f := testmodel.FormatOf(weights.F8E4M3)
		testmodel.Alter(t, dir, func(infos []weights.Info, data map[string][]byte) (list []weights.Info) {
			for _, i := range infos {
				if layout.IsLinear(i) && strings.HasSuffix(i.Name, ".weight") {
					scale := weights.Info{Name: i.Name + "_scale", DType: weights.F32}
					values := testmodel.Values(testmodel.TensorOf(t, plain, i.Name))
					codes := make([]byte, len(values))
					for k, v := range values {
						f.SetElem(codes, k, f.FromValue(float32(v*1024)))
					}
					i.DType, data[i.Name], data[scale.Name] = weights.F8E4M3, codes, []byte{1, 2, 0x83, 0x3a}
					list = append(list, scale)
				}
				list = append(list, i)
			}
			return list
		})
		computed++
		sameAsDequantised(t, name, testmodel.Open(t, dir), nil)
	}
	if computed < 20 {
		t.Errorf("only %d families were computed", computed)
	}
}

// TestQuantisedConv1D: GPTQ gives a layer's outputs first where GPT-2 stores inputs × outputs.
func TestQuantisedConv1D(t *testing.T) {
	const module = "transformer.h.0.attn.c_proj"
	dir := testmodel.Folder(t, testmodel.Config(t, "gpt2-tiny", `{"n_embd": 64, "n_head": 4, "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 32}}`), synth.Options{Seed: 1})
	testmodel.Alter(t, dir, func(infos []weights.Info, data map[string][]byte) (list []weights.Info) {
		for _, i := range infos {
			if i.Name != module+".weight" {
				list = append(list, i)
				continue
			}
			for _, x := range []weights.Info{{Name: "qweight", DType: weights.I32, Shape: []int{8, 64}}, {Name: "scales", DType: weights.F16, Shape: []int{2, 64}},
				{Name: "qzeros", DType: weights.I32, Shape: []int{2, 8}}} {
				x.Name = module + "." + x.Name
				data[x.Name] = bytes.Repeat([]byte{0x21, 0x43, 0x65, 0x17, 0x39}, x.Len())[:x.Len()*x.DType.Bits()/8]
				if x.DType == weights.F16 {
					data[x.Name] = bytes.Repeat([]byte{1, 0x20, 3, 0x1c, 9, 0x21}, x.Len())[:2*x.Len()]
				}
				list = append(list, x)
			}
		}
		return list
	})
	sameAsDequantised(t, "gptq", testmodel.Open(t, dir), func(name string) bool { return name == module+".weight" })
}
