package bench

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// passesMeasured maps names in the records to the passes whose codes are measured. trellis=0.3 was recorded with an older
// calibration; trellis=0.4 gives the same output SNR with the current one.
var passesMeasured = []struct{ name, passes string }{
	{"scales=3", "scales=3"}, {"scales=2", "scales=2"}, {"scales=5,round=1", "scales=5,round=1"}, {"trellis=0.3", "trellis=0.4"}, {"grid=4", "grid=4"},
}

// passLayer is the tensor that the passes convert. passConfig is its model, with the number of
// inputs left open: one layer and little else.
const (
	passLayer  = "model.layers.0.mlp.gate_proj.weight"
	passConfig = `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "bfloat16", "hidden_size": %d, "intermediate_size": 512,
		"num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 64, "num_hidden_layers": 1, "vocab_size": 64, "hidden_act": "silu",
		"max_position_embeddings": 64, "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "attention_bias": false, "mlp_bias": false,
		"tie_word_embeddings": false}`
)

// passPatterns returns the layer's codes in a checkpoint of a format, after each list of passes. The first entry is the
// source of the conversions: the nearest codes, with scales from the largest magnitudes.
func passPatterns(t *testing.T, format string, rows int) []quantised {
	t.Helper()
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	normalModel(t, plain, quantisedCols)
	f, err := quantise.Parse(format)
	testmodel.OK(t, err)
	source := filepath.Join(dir, "source")
	passConvert(t, plain, source, transform.Options{Format: f})
	all := []quantised{codesOf(t, "largest value at 448", source, rows)}
	for _, p := range passesMeasured {
		out := filepath.Join(dir, p.name)
		passes, err := transform.ParsePasses(p.passes)
		testmodel.OK(t, err)
		passConvert(t, source, out, transform.Options{Passes: passes})
		all = append(all, codesOf(t, p.name, out, rows))
	}
	zero := all[0]
	zero.name, zero.snr, zero.w.Data = "all codes zero", 0, make([]byte, len(zero.w.Data))
	return append(all, zero)
}

// normalModel writes the model of passConfig. The layer's weights are normally distributed.
func normalModel(t *testing.T, dir string, cols int) {
	t.Helper()
	testmodel.OK(t, synth.Folder(t.Context(), fmt.Appendf(nil, passConfig, cols), dir, synth.Options{}))
	m := testmodel.Open(t, dir)
	i := slices.IndexFunc(m.Infos(), func(i weights.Info) bool { return i.Name == passLayer })
	info, file := m.Infos()[i], m.Files()[0]
	at := int64(len(file.Head())) + info.Begin
	data := make([]byte, 0, info.Size())
	v := make([]float32, cols)
	for row := range distinctRows {
		quantisedRow(v, row)
		for _, e := range v {
			data = binary.LittleEndian.AppendUint16(data, uint16(math.Float32bits(rounded(e, 7))>>16))
		}
	}
	f, err := os.OpenFile(file.Path, os.O_WRONLY, 0)
	testmodel.OK(t, err)
	defer f.Close()
	_, err = f.WriteAt(data, at)
	testmodel.OK(t, err)
}

func passConvert(t *testing.T, from, to string, o transform.Options) {
	t.Helper()
	c, err := cost.FindCalibration("h200")
	testmodel.OK(t, err)
	o.Cost, o.Workload = c, cost.Workload{Decode: 1}
	_, err = transform.Convert(t.Context(), testmodel.Open(t, from), to, transform.ConvertOptions{Options: o})
	testmodel.OK(t, err)
}

// codesOf reads the codes of passLayer from a checkpoint.
func codesOf(t *testing.T, name, dir string, rows int) quantised {
	t.Helper()
	m := testmodel.Open(t, dir)
	d, err := quant.Describe(m)
	testmodel.OK(t, err)
	w, ok := d.Weight(passLayer)
	if !ok {
		t.Fatalf("%s: %s is not quantised", dir, passLayer)
	}
	q, err := w.Load(0)
	testmodel.OK(t, err)
	var n noise
	v := make([]float32, quantisedCols)
	for row := range distinctRows {
		quantisedRow(v, row)
		for k, e := range v {
			d := float64(e - q.Value(row, k))
			n.error, n.value = n.error+d*d, n.value+float64(e)*float64(e)
		}
	}
	made := gemm.NewMatrix(weights.F8E4M3, rows, quantisedCols)
	copy(made.Data, q.Codes)
	repeat(made.Data, quantisedCols)
	made.Scales = &gemm.Scales{Rows: q.Block[0], Cols: q.Block[1]}
	each := (quantisedCols-1)/q.Block[1] + 1
	for i := range ((rows-1)/q.Block[0] + 1) * each {
		made.Scales.Values = append(made.Scales.Values, q.Scales[i%len(q.Scales)])
	}
	return quantised{name, made, n.snr()}
}
