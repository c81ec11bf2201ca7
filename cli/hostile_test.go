package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/printable"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// hostile clears a terminal, sets its title, reverses the text's direction and begins a new line. It may be the name
// of a file.
const hostile = "a\x1b[2J\x1b]0;title\a\u202e\u009b\x7f\nFORGED line"

// TestHostileNames runs every command on files whose names and fields have control and bidirectional characters. The
// output must not affect a terminal, and no line may come from such text.
func TestHostileNames(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows allows no such file names")
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) string {
		testmodel.OK(t, os.MkdirAll(filepath.Dir(at(name)), 0o777))
		testmodel.OK(t, os.WriteFile(at(name), []byte(strings.ReplaceAll(text, "HOSTILE", quotedJSON(t, hostile))), 0o666))
		return at(name)
	}
	model := hostileModel(t, at("model"+hostile))
	config := func(name, json string) string {
		to := at(name)
		testmodel.OK(t, os.CopyFS(to, os.DirFS(model)))
		write(name+"/config.json", json)
		return to
	}
	index := at("index")
	testmodel.OK(t, os.CopyFS(index, os.DirFS(model)))
	write("index/"+weights.IndexName, `{"weight_map": {"HOSTILE": "HOSTILE.safetensors"}}`)
	plan := at("plan.json")

	for _, args := range [][]string{
		{"inspect", model}, {"inspect", model, "--tensors"}, {"inspect", model, "--json"},
		{"plan", model, "--passes", "round=4", "-o", plan}, {"plan", model, "--json", "--passes", "round=4"},
		{"convert", model, at("out" + hostile), "--passes", "round=4"},
		{"verify", model, at("out" + hostile)}, {"verify", model, at("out" + hostile), "--tensors"}, {"verify", model, at("out" + hostile), "--json"},
		{"inspect", at("out" + hostile)},
		{"convert", model, at("out" + hostile)}, {"convert", model, filepath.Join(model, "inside")},
		{"eval", model}, {"eval", model, "--tokens", write("tokens", `HOSTILE`)},
		{"predict", "--w", model + ":"}, {"predict", "--w", hostile}, {"predict", "--x", "normal(" + hostile + ")", "--w", "zeros"},
		{"measure", "--device", "simulated", "--time", "1ms", "--w", model + ":" + hostile}, {"measure", "--device", "simulated", "--w", hostile},
		{"profile", "--device", "simulated", "--w", hostile}, {"sweep", "--simulate", "--w", hostile},
		{"calibrate", hostile}, {"calibrate", hostile, "--device", "simulated", "--recipe", hostile}, {"reproduce", hostile}, {"demo", hostile},
		{"synth", model, at("synth" + hostile)}, {"synth", config("noconfig", `{"model_type": "HOSTILE"}`), at("synth")},
		{"synth", hostile, at("synth")},
		{"families", hostile}, {"passes", hostile}, {"completion", hostile}, {hostile}, {"inspect", "--" + hostile}, {"inspect", model, hostile},
		{"families", "--arch", write("arch.json", `{"HOSTILE": 1}`)},
		{"families", "--arch", write("arch2.json", `{"name": "HOSTILE", "doc": "HOSTILE", "model_types": ["HOSTILE"], "dims": [{"name": "HOSTILE"}]}`)},
		{"inspect", config("type", `{"model_type": "HOSTILE", "architectures": ["HOSTILE"]}`)},
		{"eval", config("act", `{"model_type": "llama", "hidden_act": "HOSTILE", "HOSTILE": {}}`)},
		{"inspect", config("field", `{"model_type": "llama", "hidden_size": "HOSTILE"}`)},
		{"inspect", config("method", `{"model_type": "llama", "quantization_config": {"quant_method": "HOSTILE", "HOSTILE": ["HOSTILE"]}}`)},
		{"inspect", config("key", `{"HOSTILE": 1, "HOSTILE": 2`)},
		{"inspect", index}, {"convert", index, at("out")}, {"verify", index, index},
		{"inspect", write("header.safetensors", header(t, `{"HOSTILE": {"dtype": "HOSTILE", "shape": [1], "data_offsets": [0, 4]}}`))},
		{"inspect", write("entry.safetensors", header(t, `{"HOSTILE": {"HOSTILE": 1}}`))},
		{"convert", model, at("out"), "--passes", hostile}, {"convert", model, at("out"), "--recipe", hostile},
		{"convert", model, at("out"), "--recipe", write("recipe.json", `{"passes": "HOSTILE", "HOSTILE": 1}`)},
		{"convert", model, at("out"), "--recipe", write("recipe2.json", `{"passes": "HOSTILE"}`)},
		{"convert", model, at("out"), "--plan", write("plan2.json", `{"plan_version": 2, "HOSTILE": "HOSTILE"}`)},
		{"convert", model, at("out"), "--plan", write("plan3.json", `{"plan_version": 2, "steps": [{"pass": "HOSTILE", "tensor": "HOSTILE"}]}`)},
		{"convert", model, at("out"), "--plan", plan, "--arch", hostile}, {"convert", model, at("out"), "--max-loss", hostile},
		{"convert", model, at("out"), "--format", hostile}, {"convert", model, at("out"), "--workload", hostile},
		{"predict", "--gpu", hostile, "--w", "zeros"}, {"predict", "--calibration", write("card.json", `{"card": "HOSTILE", "HOSTILE": 1}`), "--w", "zeros"},
	} {
		var stdout, stderr bytes.Buffer
		Main(t.Context(), append([]string{"lowtoggle"}, args...), &stdout, &stderr)
		for _, text := range []string{stdout.String(), stderr.String()} {
			for line := range strings.Lines(text) {
				line = strings.TrimSuffix(line, "\n")
				if shown := printable.Quote(strings.ReplaceAll(line, "\t", " ")); shown != strings.ReplaceAll(line, "\t", " ") || strings.HasPrefix(strings.TrimSpace(line), "FORGED") && !strings.HasPrefix(line, "  ") {
					t.Errorf("%q prints\n%q", args, line)
				}
			}
		}
		if stdout.Len()+stderr.Len() == 0 {
			t.Errorf("%q prints nothing", args)
		}
	}
}

// quotedJSON returns a text as the content of a JSON string.
func quotedJSON(t *testing.T, s string) string {
	t.Helper()
	js, err := json.Marshal(s)
	testmodel.OK(t, err)
	return string(js[1 : len(js)-1])
}

// header returns a safetensors file of one F32.
func header(t *testing.T, js string) string {
	t.Helper()
	js = strings.ReplaceAll(js, "HOSTILE", quotedJSON(t, hostile))
	js += strings.Repeat(" ", -len(js)&7)
	return string([]byte{byte(len(js)), byte(len(js) >> 8), 0, 0, 0, 0, 0, 0}) + js + "\x00\x00\x80\x3f"
}

// hostileModel writes a small model whose tensor, shard, file and folder have the hostile name.
func hostileModel(t *testing.T, dir string) string {
	t.Helper()
	from := testmodel.Folder(t, testmodel.Config(t, "llama-tiny", ""), synth.Options{})
	testmodel.OK(t, os.CopyFS(dir, os.DirFS(from)))
	infos := testmodel.Open(t, from).Infos()
	weightMap := map[string]string{hostile: hostile + ".safetensors"}
	for _, i := range infos {
		weightMap[i.Name] = "model.safetensors"
	}
	testmodel.OK(t, os.WriteFile(filepath.Join(dir, weights.IndexName), weights.EncodeIndex(weightMap, 0), 0o666))
	testmodel.OK(t, os.WriteFile(filepath.Join(dir, hostile+".safetensors"), []byte(header(t, `{"HOSTILE": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}`)), 0o666))
	testmodel.OK(t, os.WriteFile(filepath.Join(dir, hostile), []byte("text"), 0o666))
	testmodel.OK(t, os.Mkdir(filepath.Join(dir, hostile+"folder"), 0o777))
	return dir
}

// TestLongArguments: an error shows the beginning and the end of a very long argument.
func TestLongArguments(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	for _, args := range [][]string{{"inspect", long}, {"inspect", "--" + long}, {long}, {"convert", "m", "o", "--recipe", long},
		{"convert", "m", "o", "--passes", long}, {"predict", "--w", long}, {"families", long}, {"calibrate", long, "--tokens", long},
		{"plan", "m", "--max-loss", long}, {"synth", "m", "o", "--dtype", long}, {"eval", "m", "--workers", long}} {
		var stdout, stderr bytes.Buffer
		if status := Main(t.Context(), append([]string{"lowtoggle"}, args...), &stdout, &stderr); status == 0 || stderr.Len() == 0 || stdout.Len()+stderr.Len() > 2*printable.Longest {
			t.Errorf("%.20q: status %d, %d bytes: %.300s", args, status, stderr.Len(), stderr.String())
		}
	}
}
