package program

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// TestExpertsShareTheirLayer: experts in one tensor load their layer once, and free it after the last one. They have
// the codes that each expert has alone.
func TestExpertsShareTheirLayer(t *testing.T) {
	const experts = 3
	w := stackedExperts(t, experts, 8, 2)
	compiled := func() *Program {
		p := &Program{Source: w, Rows: w.Rows, Cols: w.Cols, Unit: 1}
		p.Format, _ = w.DType.Format()
		rule := Recoding{Lambda: 0.3, Rates: rounding.Rates{Significant: []float64{0, 1, 2, 3, 4, 5, 6, 7, 8}}}
		c, err := newCoded(p, []Operation{{Codes: &rule}}, nil)
		testmodel.OK(t, err)
		p.coded = c
		return p
	}
	p := compiled()
	var layer *Layer
	for e := range experts {
		m, err := p.Recoded(t.Context(), e, true, 2)
		testmodel.OK(t, err)
		alone, err := compiled().Recoded(t.Context(), e, true, 2)
		testmodel.OK(t, err)
		if !bytes.Equal(m.Codes, alone.Codes) {
			t.Errorf("expert %d: codes differ from those of the expert alone", e)
		}
		switch now := p.coded.experts.layer; {
		case e == experts-1 && now != nil:
			t.Error("the layer stays after the last expert")
		case e < experts-1 && (now == nil || layer != nil && now != layer):
			t.Errorf("expert %d: the layer is loaded again", e)
		default:
			layer = now
		}
	}
}

// TestExpertsFollowTheirReference: the codes of each expert approximate the expert's own rows of the reference.
func TestExpertsFollowTheirReference(t *testing.T) {
	const experts, n = 3, 4
	w := stackedExperts(t, experts, n, 2)
	f := testmodel.FormatOf(weights.F32)
	data := bytes.Clone(w.ReadRows(nil, 0, w.Rows))
	for i := range len(data) / 4 {
		f.SetElem(data, i, f.Elem(data, i)^f.SignMask()) // codes have these values, too
	}
	p := &Program{Source: w, Rows: w.Rows, Cols: w.Cols, Unit: 1, Format: f,
		reference: &quant.Weight{Name: w.Name, DType: weights.F32, Shape: w.Shape, Rows: w.Rows, Cols: w.Cols, Unit: 1, Parts: []quant.Part{{Tensor: weights.Tensor{Data: data}}}}}
	var err error
	p.coded, err = newCoded(p, []Operation{{Codes: &Recoding{}}}, nil)
	testmodel.OK(t, err)
	want, got := make([]float32, w.Cols), make([]float32, w.Cols)
	for e := range experts {
		m, err := p.Recoded(t.Context(), e, true, 1)
		testmodel.OK(t, err)
		for row := range n {
			f.Decode(want, p.reference.ReadRows(nil, e*n+row, 1))
			if m.Row(got, row); !slices.Equal(got, want) {
				t.Errorf("row %d of expert %d has other values than the reference", row, e)
			}
			rows, from := p.matrixOf(e, row, 1)
			if rows.Row(got, from); !slices.Equal(got, want) {
				t.Errorf("row %d of expert %d, alone, has other values than the reference", row, e)
			}
		}
	}
}

// stackedExperts returns experts of n outputs and groups of 32 inputs, in the layout of gpt-oss.
func stackedExperts(t *testing.T, experts, n, groups int) *quant.Weight {
	t.Helper()
	codes, scales := make([]byte, experts*n*groups*16), make([]byte, experts*n*groups)
	for i := range codes {
		codes[i] = byte(i * i * 31)
	}
	for i := range scales {
		scales[i] = byte(120 + i%5)
	}
	const name = "model.layers.0.mlp.experts.down_proj"
	head, _, err := weights.EncodeHeader([]weights.Info{
		{Name: name + "_blocks", DType: weights.U8, Shape: []int{experts, n, groups, 16}},
		{Name: name + "_scales", DType: weights.U8, Shape: []int{experts, n, groups}},
	}, nil)
	testmodel.OK(t, err)
	dir := t.TempDir()
	f, err := weights.Create(filepath.Join(dir, "model.safetensors"), head, int64(len(codes)+len(scales)))
	testmodel.OK(t, err)
	for _, data := range [][]byte{codes, scales} {
		_, err = f.Write(data)
		testmodel.OK(t, err)
	}
	testmodel.OK(t, f.Close())
	config := `{"model_type": "gpt_oss", "quantization_config": {"quant_method": "mxfp4"}}`
	testmodel.OK(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o666))
	m := testmodel.Open(t, dir)
	d, err := quant.Describe(m)
	testmodel.OK(t, err)
	w := quant.Group(m, d).All[0]
	if w.Quantised == nil || w.Quantised.Experts() != experts {
		t.Fatalf("%s is no weight of %d experts", w.Name, experts)
	}
	return w
}
