package arch

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

const llamaConfig = `{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 6,
	"num_hidden_layers": 2, "vocab_size": 7, "intermediate_size": 5, "num_attention_heads": 6,
	"num_key_value_heads": 2, "head_dim": 4, "attention_bias": true, "mlp_bias": true}`

const gpt2Config = `{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 6, "n_layer": 2,
	"n_head": 3, "vocab_size": 7, "n_positions": 5, "n_inner": null}`

// unusual is a family with properties that the embedded families lack: layouts interleaved per head, rotary positions in a part
// of a head, experts by name and stacked, and a different first layer.
const unusual = `{
	"family": "unusual", "model_types": ["unusual"], "prefixes": ["m."],
	"flags": [{"name": "relu", "fields": ["act"], "is": ["relu"]}],
	"dims": [
		{"name": "hidden", "fields": ["text.hidden", "hidden"]}, {"name": "layers", "fields": ["layers"]},
		{"name": "dense", "fields": ["dense"], "min": 0}, {"name": "neurons", "value": "(hidden + 2) * 2 - 1"},
		{"name": "kv_heads", "when": "relu", "value": "1"}, {"name": "kv_heads", "value": "2"},
		{"name": "queries", "value": "3"}, {"name": "rotary_pairs", "value": "2"}, {"name": "others", "value": "3"},
		{"name": "head_dim", "value": "2 * rotary_pairs + others"}, {"name": "experts", "value": "3"}],
	"loops": [{"name": "layer", "count": "layers"}, {"name": "expert", "count": "experts"}],
	"indices": [
		{"name": "residual", "length": "hidden", "permute": "always", "sign": "always"},
		{"name": "kv", "per": ["layer"], "length": "kv_heads", "permute": "always"},
		{"name": "group", "per": ["layer", "kv"], "length": "queries", "permute": "always"},
		{"name": "pair", "per": ["layer", "kv"], "length": "rotary_pairs", "sign": "always", "scale": "always"},
		{"name": "rest", "per": ["layer", "kv"], "length": "others", "permute": "always", "sign": "always"},
		{"name": "v", "per": ["layer", "kv"], "length": "head_dim", "permute": "always", "scale": "always"},
		{"name": "ffn", "per": ["layer"], "length": "neurons", "permute": "always", "sign": "!relu", "scale": "relu"},
		{"name": "expert_ffn", "per": ["layer", "expert"], "length": "neurons", "permute": "always"},
		{"name": "stacked", "per": ["layer"], "length": "experts", "permute": "always"}],
	"tensors": [
		{"name": "{prefix}embed.weight", "role": "embedding", "axes": ["100", "+residual"]},
		{"name": "{prefix}b.{layer}.qkv.weight", "role": "linear",
		 "axes": ["kv (group (2 +pair | +rest) | 2 -pair | -rest | +v)", "-residual"]},
		{"name": "{prefix}b.{layer}.o.weight", "role": "linear", "axes": ["+residual", "kv group -v"]},
		{"name": "{prefix}b.{layer}.gate_up.weight", "role": "linear", "axes": ["ffn | +ffn", "-residual"], "to": "dense"},
		{"name": "{prefix}b.{layer}.down.weight", "role": "linear", "axes": ["+residual", "-ffn"], "to": "dense"},
		{"name": "{prefix}b.{layer}.x.{expert}.up.weight", "role": "linear", "axes": ["expert_ffn", "-residual"], "from": "dense"},
		{"name": "{prefix}b.{layer}.x.{expert}.down.weight", "role": "linear", "axes": ["+residual", "expert_ffn"], "from": "dense"},
		{"name": "{prefix}b.{layer}.router.weight", "role": "linear", "axes": ["stacked", "-residual"], "from": "dense"},
		{"name": "{prefix}b.{layer}.stack.weight", "role": "linear", "out": 2, "axes": ["stacked", "-residual", "4"], "from": "dense"}]}`

const unusualConfig = `{"text": {"hidden": 4.0}, "hidden": 99, "layers": 3, "dense": 1}`

func mustParse(t testing.TB, data string) *Family {
	t.Helper()
	f, err := Parse([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// source returns the text of an embedded family.
func source(t testing.TB, name string) string {
	t.Helper()
	data, err := files.ReadFile("families/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// synthetic resolves exactly the tensors that a family expects.
func synthetic(t testing.TB, f *Family, config string) ([]weights.Info, *Layout) {
	t.Helper()
	infos, err := f.Expect([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	l, err := f.Resolve([]byte(config), infos)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Claims) != len(infos) || len(l.Unclaimed) > 0 {
		t.Fatalf("%d of %d tensors claimed, unclaimed %v", len(l.Claims), len(infos), l.Unclaimed)
	}
	return infos, l
}

func find(t testing.TB, f []*Family, name string) *Family {
	t.Helper()
	for _, f := range f {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("no family %q", name)
	return nil
}

// cases returns the layouts that the property tests run over.
func cases(t testing.TB) map[string]*Layout {
	t.Helper()
	all := map[string]*Layout{}
	_, all["llama"] = synthetic(t, find(t, Families(), "llama"), llamaConfig)
	_, all["gpt2"] = synthetic(t, find(t, Families(), "gpt2"), gpt2Config)
	_, all["unusual"] = synthetic(t, mustParse(t, unusual), unusualConfig)
	return all
}

// tiny returns the configs that random models are made of, a model of every family among them.
func tiny(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("../synth/configs/*-tiny.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no configs: %v", err)
	}
	all := map[string][]byte{}
	for _, path := range paths {
		if all[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func familyOf(t testing.TB, config []byte) *Family {
	t.Helper()
	f, err := Detect(config)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// realModel reads the config and the headers of a model folder.
func realModel(t testing.TB, name string) (configJSON []byte, infos []weights.Info) {
	t.Helper()
	dir := filepath.Join("../../../shared/models", name)
	configJSON, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Skipf("no model to test with: %v", err)
	}
	shards, err := filepath.Glob(filepath.Join(dir, "model*.safetensors"))
	if err != nil || len(shards) == 0 {
		t.Fatalf("no shards in %s: %v", dir, err)
	}
	for _, shard := range shards {
		infos = append(infos, header(t, shard)...)
	}
	return configJSON, infos
}

// header reads the tensors' names, types and shapes of a safetensors file.
func header(t testing.TB, path string) (infos []weights.Info) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(data[8:8+binary.LittleEndian.Uint64(data)], &entries); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for name, raw := range entries {
		if strings.HasPrefix(name, "__") {
			continue
		}
		info := weights.Info{Name: name}
		if err := json.Unmarshal(raw, &info); err != nil {
			t.Fatalf("%s: %s: %v", path, name, err)
		}
		infos = append(infos, info)
	}
	return infos
}
