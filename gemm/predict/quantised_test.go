package predict_test

import (
	"math"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// TestQuantisedConversion: equal codes cost the same, and codes that are mostly one value cost less, by an arithmetic that is
// calibrated and by BF16 values. The folders compared as sources give the same figure with the same interval.
func TestQuantisedConversion(t *testing.T) {
	c, err := cost.FindCalibration("h200")
	testmodel.OK(t, err)
	const name = "model.layers.0.mlp.up_proj.weight"
	for _, q := range testmodel.Quantisations {
		if q.Name != "compressed fp8 channel" && q.Name != "pack-quantized" && q.Name != "compressed int8" {
			continue
		}
		folders := map[*quant.Quantised]string{}
		weightOf := func(dir string) *quant.Quantised {
			d, err := quant.Describe(testmodel.Open(t, dir))
			testmodel.OK(t, err)
			w, _ := d.Weight(name)
			folders[w] = dir + ":" + name
			return w
		}
		dir := testmodel.Quantised(t, q, testmodel.With{})
		before, same := weightOf(dir), weightOf(testmodel.Quantised(t, q, testmodel.With{}))
		testmodel.Edit(t, dir, func(info weights.Info, data []byte) {
			if strings.HasPrefix(info.Name, name) && (info.DType.Bits() == 8 || info.DType == weights.I32) {
				for i := range data[:len(data)*3/4] {
					data[i] = 0x11
				}
			}
		})
		quiet := weightOf(dir)
		for phase, load := range map[string]cost.Workload{"prefill": {Prefill: 1}, "decode": {Decode: 1}} {
			o := predict.Options{Compare: true, Cold: phase == "decode", Operands: operand.Options{Quantised: true}}
			if o.Cold {
				o.Operands.Tokens = operand.DecodeTokens
			}
			ratio := func(after *quant.Quantised) float64 {
				r, err := predict.Conversion(t.Context(), c, []predict.Change{{Codes: &predict.Codes{Before: before, After: after}}}, predict.ConversionOptions{Workload: load})
				testmodel.OK(t, err)
				sources, err := predict.Sources(t.Context(), c, []operand.Source{operand.MustParse(folders[same]), operand.MustParse(folders[after])}, o)
				testmodel.OK(t, err)
				over := sources.Predictions[1].Over
				if math.Abs(over.Interval[0]-r.Interval[0]) > 0.006 || math.Abs(over.Interval[1]-r.Interval[1]) > 0.006 {
					t.Errorf("%s, %s: %+v as sources, %+v as a conversion", q.Name, phase, over, r)
				}
				return r.Relative
			}
			if a, b := ratio(same), ratio(quiet); a != 1 || !(b < 0.995) {
				t.Errorf("%s, %s: %v with the same codes, %v with quiet ones", q.Name, phase, a, b)
			}
		}
	}
}

// TestKernelDecidesRole: the requested role does not change the prediction of a quantised layer.
func TestKernelDecidesRole(t *testing.T) {
	c, err := cost.FindCalibration("h200")
	testmodel.OK(t, err)
	for _, q := range testmodel.Quantisations {
		if q.Name != "compressed fp8 channel" && q.Name != "pack-quantized" {
			continue
		}
		d, err := quant.Describe(testmodel.Open(t, testmodel.Quantised(t, q, testmodel.With{})))
		testmodel.OK(t, err)
		w, _ := d.Weight("model.layers.0.mlp.up_proj.weight")
		a, err := predict.Quantised(t.Context(), c, w, w, 0, cost.Stationary, cost.DefaultWorkload)
		testmodel.OK(t, err)
		b, err := predict.Quantised(t.Context(), c, w, w, 0, cost.Streaming, cost.DefaultWorkload)
		testmodel.OK(t, err)
		if a != b {
			t.Errorf("%s: %v stationary, %v streaming", q.Name, a, b)
		}
	}
}
