package model

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/clitest"
	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// quantised writes a small GPTQ checkpoint. With head, lm_head is quantised too.
func quantised(t *testing.T, head bool) string {
	t.Helper()
	for _, q := range testmodel.Quantisations {
		if q.Name == "gptq" {
			return testmodel.Quantised(t, q, testmodel.With{Head: head})
		}
	}
	t.Fatal("no layout")
	return ""
}

// says runs a command and checks that its output, joined to one line, has all parts. status is the expected exit status.
func says(t *testing.T, status int, parts []string, args ...string) {
	t.Helper()
	stdout, err := clitest.Run(t.Context(), []*cli.Command{Convert, Eval, Plan, Inspect, Verify}, args...)
	if exit.Status(err) != status {
		t.Errorf("%v: exit status %d (%v), want %d", args, exit.Status(err), err, status)
	}
	text := strings.Join(strings.Fields(string(stdout)), " ")
	if err != nil {
		text += " " + err.Error()
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%v: the output lacks %q:\n%s", args, part, text)
		}
	}
	for _, advice := range []string{"out of the checkpoint", "remove"} {
		if strings.Contains(text, advice) {
			t.Errorf("%v: advises %q:\n%s", args, advice, text)
		}
	}
}

const copiedParts = "quantised: int4, groups of 64 (gptq), copied byte for byte: 14 × codes (*.qweight), 14 × scales (*.scales), 14 × zero points (*.qzeros), 14 × group index (*.g_idx)"

// TestQuantisedReports: every report names the format and the copied tensors.
func TestQuantisedReports(t *testing.T) {
	dir, out := quantised(t, false), filepath.Join(t.TempDir(), "out")
	says(t, exit.Done, []string{strings.Replace(copiedParts, ", copied byte for byte", "", 1), "format: 14 weights in int4, groups of 64 (gptq)"}, "inspect", dir)
	says(t, exit.Done, []string{`"quant_method": "gptq"`, `"quantised": [ { "format": "int4, groups of 64 (gptq)", "role": "codes", "tensors": 14,`, `"part": "scales"`}, "inspect", "--json", dir)
	says(t, exit.Done, []string{`"quantised": [ { "format": "int4, groups of 64 (gptq)", "role": "codes"`}, "plan", "--json", dir)
	says(t, exit.Done, []string{copiedParts, "lm_head 1", "mlp.up_proj 2 65 536 – – 0.0 %"}, "convert", dir, out)
	says(t, exit.Done, []string{copiedParts, "ok: every tensor"}, "verify", dir, out)
	says(t, exit.Done, []string{`"quantised": [ { "format": "int4, groups of 64 (gptq)"`}, "verify", "--json", dir, out)
}

// TestInspectCountsQuantisedLayers: quantised layers are counted for known and unknown families, if their values can
// be read.
func TestInspectCountsQuantisedLayers(t *testing.T) {
	for _, q := range testmodel.Quantisations {
		for _, fields := range []string{"", `{"model_type": "x", "architectures": ["X"]}`} {
			stdout, err := clitest.Run(t.Context(), []*cli.Command{Inspect}, "inspect", "--json", testmodel.Quantised(t, q, testmodel.With{Fields: fields}))
			testmodel.OK(t, err)
			var r struct {
				Total struct {
					Linear int `json:"linear_elements"`
				} `json:"total"`
				Weights []struct {
					Operand   string         `json:"operand"`
					Predicted *cost.Estimate `json:"predicted"`
				} `json:"weights"`
				Quantised []quant.Copied `json:"quantised"`
			}
			testmodel.OK(t, json.Unmarshal(stdout, &r))
			const head, layers = 64 * 128, 2 * (4*128*128 + 3*128*256)
			if all := r.Total.Linear == head+layers; all != (len(r.Weights) == 14) || !all && r.Total.Linear != head || len(r.Quantised) == 0 {
				t.Errorf("%s: %d weights of linear layers, %d of them quantised", q.Name, r.Total.Linear, len(r.Weights))
			}
			for _, w := range r.Weights {
				if w.Predicted == nil || !(w.Predicted.Relative > 0) || w.Operand == "" {
					t.Errorf("%s: %+v", q.Name, w)
				}
			}
		}
	}
}

// TestNothingLeft: the status is 3, and the copy is written.
func TestNothingLeft(t *testing.T) {
	dir, out := quantised(t, true), filepath.Join(t.TempDir(), "out")
	const left = "nothing was changed: these passes cannot change the quantised weights, or save no energy there; docs/quantised.md lists passes for codes and scales"
	const coarse = "with these passes, no change to a quantised weight keeps an output SNR of 31 dB: give a smaller --min-snr"
	says(t, exit.Short, []string{coarse}, "plan", "-o", filepath.Join(t.TempDir(), "plan.json"), dir)
	says(t, exit.Short, []string{coarse, "15 × codes", "written"}, "convert", dir, out)
	says(t, exit.Short, []string{"nothing was changed: --ignore, --only or the recipe's lists exclude all 15 linear layers: include at least one"}, "convert", "--ignore", "*", dir, out+"4")
	says(t, exit.Short, []string{left}, "convert", "--recipe", "exact", dir, out+"2")
	says(t, exit.Short, []string{`"drop_in": true`, `"tensors": 15`}, "convert", "--json", dir, out+"3")
	says(t, exit.Done, []string{"ok: every tensor"}, "verify", dir, out)
}

// TestQuantisedLoss: losses are computed with the values of codes, and a search changes the other layers.
func TestQuantisedLoss(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.safetensors")
	head, placed, err := weights.EncodeHeader([]weights.Info{{Name: "calibration", DType: weights.I32, Shape: []int{8, 16}}, {Name: "evaluation", DType: weights.I32, Shape: []int{8, 16}}}, nil)
	testmodel.OK(t, err)
	testmodel.OK(t, os.WriteFile(path, append(head, make([]byte, placed[1].End)...), 0o666))
	for _, q := range testmodel.Quantisations {
		dir, out := testmodel.Quantised(t, q, testmodel.With{}), filepath.Join(t.TempDir(), "out")
		switch q.Name {
		case "bitsandbytes nf4":
			unread := []string{`the checkpoint is quantised, and weight "model.layers.0.self_attn.q_proj.weight"`, "nf4 (bitsandbytes)", "cannot be read: the model's loss cannot be computed"}
			says(t, exit.Failed, unread, "eval", "--tokens", path, dir)
			says(t, exit.Failed, unread, "convert", "--tokens", path, "--max-loss", "0.1%", dir, out)
		case "compressed fp8 block", "pack-quantized":
			says(t, exit.Done, []string{"perplexity"}, "eval", "--tokens", path, dir)
			want := []string{"perplexity"}
			if q.Name == "compressed fp8 block" { // the other format loses nothing
				want = append(want, "on inputs energy, predicted")
			}
			says(t, exit.Done, want, "convert", "--tokens", path, "--passes", "compensate,grid=8", dir, out)
			says(t, exit.Done, []string{"ok: every tensor", "perplexity"}, "verify", "--tokens", path, dir, out)
		}
	}
}

// TestContradictionsFail: every command names the tensor and the field of a contradiction.
func TestContradictionsFail(t *testing.T) {
	dir := quantised(t, false)
	testmodel.OK(t, os.WriteFile(filepath.Join(dir, "quantize_config.json"), []byte(`{"bits": 4, "group_size": 128}`), 0o666))
	out, same := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "same")
	testmodel.OK(t, os.CopyFS(same, os.DirFS(dir)))
	for _, args := range [][]string{{"inspect", dir}, {"plan", "--json", dir}, {"convert", dir, out}, {"verify", dir, same}} {
		says(t, exit.Failed, []string{"config.json: quantization_config.group_size is 64, but quantize_config.json: group_size is 128"}, args...)
	}
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Error("a folder was written")
	}
}

func TestEndings(t *testing.T) {
	if got := strings.Join(endings([]string{"a.weight", "b.N.weight", "c.scale", "plain"}), " "); got != "*.weight *.scale plain" {
		t.Error(got)
	}
	var none []quant.Copied
	printQuantised(nil, none, copied) // prints nothing
}

// TestVerifyPredictsFormats: verify predicts the energy that convert --format predicted, relative to the same codes,
// and names the baseline.
func TestVerifyPredictsFormats(t *testing.T) {
	dir := testmodel.Folder(t, testmodel.Config(t, "llama-tiny", testmodel.QuantisedShape), synth.Options{Seed: 3})
	commands := []*cli.Command{Convert, Verify}
	for _, format := range []string{"int4", "int4=32", "fp8", "fp8-block", "nvfp4"} {
		for _, load := range []string{"prefill", "decode"} {
			out := filepath.Join(t.TempDir(), "out")
			var made struct {
				Predicted *predict.Ratio `json:"predicted"`
			}
			stdout, err := clitest.Run(t.Context(), commands, "convert", "--json", "--format", format, "--workload", load, dir, out)
			testmodel.OK(t, err)
			testmodel.OK(t, json.Unmarshal(stdout, &made))
			var found verifyJSON
			stdout, err = clitest.Run(t.Context(), commands, "verify", "--json", "--workload", load, dir, out)
			testmodel.OK(t, err)
			testmodel.OK(t, json.Unmarshal(stdout, &found))
			switch e := found.Energy; {
			case made.Predicted == nil || !(made.Predicted.Relative < 1):
				t.Fatalf("%s, %s: convert predicts %+v", format, load, made.Predicted)
			case e == nil || !reflect.DeepEqual(e.Predicted, made.Predicted):
				t.Errorf("%s, %s: verify predicts %+v, convert %+v", format, load, e, made.Predicted)
			case e.RelativeTo != transform.FormatBaseline:
				t.Errorf("%s, %s: verify names the baseline %q", format, load, e.RelativeTo)
			}
			if format == "int4" && load == "decode" { // both are products of BF16, so they can be measured
				says(t, exit.Done, []string{"kernel: before: cublaslt: unquantised layers,", "kernel: after: lowtoggle's own dequantising kernel: int4,", "note: the measured energy is relative to the source's weights as they are stored", "--format int4 --passes"},
					"verify", "--gpu", "--device", "simulated", "--total", "--time", "1s", "--workload", load, dir, out)
			}
			says(t, exit.Done, []string{"% predicted, 95 % interval", "note: the predicted energy is relative to " + transform.FormatBaseline}, "verify", "--workload", load, dir, out)
		}
	}
}
