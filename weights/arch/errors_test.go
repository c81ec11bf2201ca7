package arch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

func TestParseErrors(t *testing.T) {
	const axes = `"axes": ["kv (group (2 +pair | +rest) | 2 -pair | -rest | +v)", "-residual"]`
	for _, c := range []struct{ old, new, want string }{
		{`"unusual",`, `"unusual" "`, `family file: line 2, column 22: invalid JSON: invalid character '"' after object key:value pair: correct this place, or copy the file again`},
		{`"flags"`, `"flag"`, `family file: unknown field "flag"`},
		{`"out": 2`, `"out": "2"`, `family file: line 31, column 73: field "tensors.out" holds a JSON string, but must be a whole number`},
		{`"from": "dense"}]}`, `"from": "dense"}]} []`, `text follows the JSON value: remove the text, or copy the file again`},
		{`"family": "unusual"`, `"family": ""`, `family "": family: has no name`},
		{`"model_types": ["unusual"],`, ``, `needs model_types or architectures`},
		{`"name": "relu"`, `"name": "!relu"`, `flags[0] "!relu": a flag's name must be a word other than "always", without "!"`},
		{`"fields": ["act"], `, ``, `flags[0] "relu": has no fields`},
		{`"when": "relu"`, `"when": "gelu"`, `dims[4] "kv_heads": the condition names the flag "gelu", which is not in flags`},
		{`"when": "relu", `, ``, `dims[5] "kv_heads": is never used, because an earlier entry of this name has no "when"`},
		{`"(hidden + 2) * 2 - 1"`, `"(hidden + 2 * 2"`, `dims[3] "neurons": value "(hidden + 2 * 2": column 16: the text ends, but needs ")" here`},
		{`"(hidden + 2) * 2 - 1"`, `"hidden % 2"`, `column 8: unexpected '%'`},
		{`"(hidden + 2) * 2 - 1"`, `"hidden × 2"`, "column 8: unexpected '×'"},
		{`"(hidden + 2) * 2 - 1"`, `"head_dim"`, `dims[3] "neurons": value "head_dim": names the dim "head_dim", which is not defined before this entry`},
		{`"name": "queries"`, `"name": "kv heads"`, `dims[6] "kv heads": a name must consist of ASCII letters, digits and _, and must not start with a digit`},
		{`"value": "2"`, `"min": 1`, `dims[5] "kv_heads": give "fields" or "value"`},
		{`"count": "layers"`, `"count": ""`, `loops[0] "layer": has no count`},
		{`"name": "group"`, `"name": "hidden"`, `indices[2] "hidden": the name is used already: choose another`},
		{`"per": ["layer", "kv"], "length": "queries"`, `"per": ["kv"], "length": "queries"`, `indices[2] "group": per: "layer" must come before "kv", because index "kv" is per "layer"`},
		{`"per": ["layer", "kv"], "length": "queries"`, `"per": ["layer", "kw"], "length": "queries"`, `indices[2] "group": per: names "kw", which is neither a loop nor an index before this entry`},
		{`"role": "embedding"`, `"role": "matrix"`, `role is "matrix", not one of ["linear" "embedding" "norm" "bias" "buffer"]`},
		{`"{prefix}embed.weight"`, `"{prefix}embed{layer}.weight"`, `a variable must stand alone between dots`},
		{`"{prefix}b.{layer}.o.weight"`, `"{prefix}b.{block}.o.weight"`, `name "{prefix}b.{block}.o.weight": loops has no entry named "block"`},
		{`"axes": ["100", "+residual"]`, `"out": 1`, `a buffer must have no axes, and every other tensor needs an axis per dimension`},
		{`"out": 2`, `"out": 3`, `"out" is 3: give an axis from 0 to 2`},
		{`"out": 2`, `"norm": "n"`, `norm: norms has no entry named "n"`},
		{`"out": 2`, `"bias": "b"`, `bias: tensors has no bias named "b"`},
		{axes, `"axes": ["kv (group pear | v)", "-residual"]`, `axis 0 "kv (group pear | v)": column 11: no index or dim is called "pear"`},
		{axes, `"axes": ["kv ((2 v", "-residual"]`, `column 9: the text ends, but needs ")" here`},
		{axes, `"axes": ["kv ) v", "-residual"]`, `column 4: found ")", but needs a factor, "|" or "&" here`},
		{axes, `"axes": ["", "-residual"]`, `column 1: the text ends, but needs a factor here`},
		{axes, `"axes": ["kv 0", "-residual"]`, `column 4: a length must be at least 1`},
		{axes, `"axes": ["+2 kv", "-residual"]`, `column 2: found "2", but needs an index here`},
		{axes, `"axes": ["+head_dim", "-residual"]`, `column 1: "head_dim" is a dim or a number, not an index: remove its + or -`},
		{axes, `"axes": ["group v", "-residual"]`, `column 1: the index "group" is per kv, but kv does not come before it in a product`},
		{axes, `"axes": ["(kv | group) v", "-residual"]`, `column 7: the index "group" is per kv, but kv does not come before it in a product`},
		{axes, `"axes": ["kv kv v", "-residual"]`, `column 4: the index "kv" occurs twice in one product`},
		{axes, `"axes": ["head_dim & ffn", "-residual"]`, `column 12: "ffn" can be permuted, so it must also stand before the "&"`},
		{axes, `"axes": ["` + strings.Repeat("(", 99) + `", "-residual"]`, `column 18: more than 16 nested parentheses`},
		{`x.{expert}.up.weight`, `x.up.weight`, `the index "expert_ffn" is per expert, but the tensor's name has no {expert}`},
		{`["+residual", "-ffn"]`, `["+residual", "+ffn"]`, `indices[6] "ffn": "scale" needs an axis with +ffn and one with -ffn, so that the two factors cancel`},
		{`"length": "experts", "permute"`, `"length": "experts", "sign"`, `indices[8] "stacked": "sign" needs two axes with +stacked or -stacked, so that the two signs cancel`},
		{`["stacked", "-residual"`, `["3", "-residual"`, `indices[8] "stacked": no axis uses this index: remove it`},
	} {
		changed := strings.ReplaceAll(unusual, c.old, c.new)
		if changed == unusual {
			t.Errorf("%s: nothing replaced", c.old)
		}
		if _, err := Parse([]byte(changed)); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s for %s: got\n%v\nwant\n%s", c.new, c.old, err, c.want)
		}
	}
}

func TestReferenceErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`"kind": "rmsnorm", "weight": "{prefix}norm`, `"kind": "batchnorm", "weight": "{prefix}norm`, `norms[2] "final": kind is "batchnorm", not one of ["layernorm" "rmsnorm" "rmsnorm1p"]`},
		{`"weight": "{prefix}norm.weight"`, `"weight": "{prefix}embed_tokens.weight"`, `norms[2] "final": weight: tensors has no norm named "{prefix}embed_tokens.weight"`},
		{`"weight": "{prefix}norm.weight"`, `"weight": "{prefix}norm.weight", "bias": "b"`, `norms[2] "final": bias: tensors has no norm named "b"`},
		{`"name": "final", `, `"name": "attn", `, `norms[2] "attn": the name is empty or used already: choose another`},
		{`"norm": "final"`, `"norm": "attn"`, `tensors[20] "{root}lm_head.weight": the bias or norm "{prefix}layers.{layer}.input_layernorm.weight" has a variable that the tensor's name lacks`},
		{`"{prefix}layers.{layer}.mlp.down_proj.bias"`, `"{prefix}layers.7.mlp.down_proj.weight"`, `a tensor's name can match both this entry and tensors[16] "{prefix}layers.{layer}.mlp.down_proj.weight"`},
		{`"role": "embedding"`, `"role": "embedding", "softmax": true`, `tensors[0] "{prefix}embed_tokens.weight": only a linear tensor may have "out", "softmax", "norm" or "bias"`},
		{`"role": "embedding"`, `"role": "embedding", "from": "layers"`, `tensors[0] "{prefix}embed_tokens.weight": "from" and "to" need a variable in the tensor's name`},
		{`"{root}lm_head.weight", "role": "linear", "axes": ["vocab", "-residual & -final_norm"]`, `"{root}lm_head.weight", "role": "linear", "axes": ["vocab", "-residual & -final_norm"], "doc": "x"`, ``},
	} {
		text := source(t, "llama")
		changed := strings.ReplaceAll(text, c.old, c.new)
		if changed == text {
			t.Errorf("%s: nothing replaced", c.old)
		}
		if _, err := Parse([]byte(changed)); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s for %s: got\n%v\nwant\n%s", c.new, c.old, err, c.want)
		}
	}
}

func TestParseListsAll(t *testing.T) {
	bad := strings.NewReplacer(`"{prefix}embed.weight", "role": "embedding"`, `"{prefix}embed.weight", "role": "x"`,
		`"gate_up`, `"gate`, `"value": "3"`, `"value": "three"`, `"+residual", "kv group -v"`, `"+residuum", "kv group -v"`).Replace(unusual)
	_, err := Parse([]byte(bad))
	if err == nil || strings.Count(err.Error(), "\n")+1 != 5 { // "3" stands for three dims
		t.Errorf("%v", err)
	}
}

func TestConfigErrors(t *testing.T) {
	for _, c := range []struct{ family, old, new, want string }{
		{"llama", `{"model_type"`, `{"model_type",`, `config.json: line 1, column 14: invalid JSON: invalid character ',' after object key: correct this place, or copy the file again`},
		{"gpt2", `"n_embd": 6,`, ``, `config.json: n_embd or hidden_size is missing`},
		{"llama", `"hidden_size": 6`, `"hidden_size": "6"`, `config.json: hidden_size is "6", not a whole number`},
		{"llama", `"hidden_size": 6`, `"hidden_size": 6.5`, `config.json: hidden_size is 6.5, not a whole number`},
		{"llama", `"hidden_size": 6`, `"hidden_size": [6]`, `config.json: hidden_size is [6], not a whole number`},
		{"llama", `"hidden_size": 6`, `"hidden_size": {}`, `config.json: hidden_size is {}, not a whole number`},
		{"llama", `"hidden_size": 6`, `"hidden_size": 0`, `config.json: hidden_size is 0, outside 1 to 2147483648`},
		{"llama", `"hidden_size": 6`, `"hidden_size": -6`, `config.json: hidden_size is -6, outside 1 to 2147483648`},
		{"llama", `"hidden_size": 6`, `"hidden_size": 1e999`, `config.json: hidden_size is 1e999, outside 1 to 2147483648`},
		{"llama", `"num_key_value_heads": 2`, `"num_key_value_heads": 4`, `config.json: num_attention_heads 6 is not a multiple of num_key_value_heads 4`},
		{"llama", `"head_dim": 4`, `"head_dim": 5`, `config.json: head_dim 5 is not a multiple of 2`},
		{"llama", `"attention_bias": true`, `"attention_bias": 1`, `config.json: attention_bias is 1, not true or false`},
		{"llama", `["LlamaForCausalLM"]`, `[{}]`, `config.json: architectures is {}, not a string, a number or true or false`},
		{"gpt2", `"n_head": 3`, `"n_head": 4`, `config.json: n_embd 6 is not a multiple of n_head 4`},
		{"gpt2", `"n_inner": null`, `"n_inner": 1e400`, `config.json: n_inner is 1e400`},
		{"llama", `"num_hidden_layers": 2`, `"num_hidden_layers": 1000000`, `config.json: num_hidden_layers 1000000 is more than 262144`},
		{"llama", `"num_hidden_layers": 2`, `"num_hidden_layers": 100000`, `config.json: the model would have more than 262144 tensors`},
		{"gpt2", `"n_embd": 6, "n_layer": 2,
	"n_head": 3`, `"n_embd": 400000000, "n_layer": 2, "n_head": 400000000`, `the model would have more than 262144 instances of index "qk"`},
		{"gpt2", `"n_embd": 6`, `"n_embd": 600000000`, `config.json: 4 * hidden is 2400000000, outside 0 to 2147483648`},
		{"unusual", `"dense": 1`, `"dense": 4`, `config.json: the range 0 to 4 ("from", "to") is not within 0 to 3 (for tensor "{prefix}b.{layer}.gate_up.weight")`},
		{"unusual", `"dense": 1`, `"dense": -1`, `config.json: dense is -1, outside 0 to 2147483648`},
		{"llama", `"head_dim": 4`, `"head_dim": 2000000000`, `more than 2147483648 positions`},
	} {
		config := map[string]string{"llama": llamaConfig, "gpt2": gpt2Config, "unusual": unusualConfig}[c.family]
		changed := strings.Replace(config, c.old, c.new, 1)
		if changed == config {
			t.Errorf("%s: nothing replaced", c.old)
		}
		f := find(t, append(Families(), mustParse(t, unusual)), c.family)
		_, err := f.Expect([]byte(changed))
		_, err2 := f.Resolve([]byte(changed), nil)
		for _, err := range []error{err, err2} {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got\n%v\nwant\n%s", c.new, err, c.want)
			}
		}
	}
}

func TestExpectErrors(t *testing.T) {
	f := find(t, Families(), "llama")
	for more, want := range map[string]string{
		`"torch_dtype": "int3"`: `config.json: torch_dtype is "int3", not an element type such as "bfloat16", "float16" or "float32"`,
		`"dtype": 16`:           `config.json: dtype is 16, not an element type such as`,
		`"vocab_size": 2147483648, "hidden_size": 2147483648, "num_hidden_layers": 2, "intermediate_size": 1`: `config.json: tensor "model.embed_tokens.weight" of shape [2147483648 2147483648] is too large for a file`,
	} {
		_, err := f.Expect([]byte(strings.TrimSuffix(llamaConfig, "}") + ", " + more + "}"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", more, err)
		}
	}
}

func TestResolveErrors(t *testing.T) {
	f := find(t, Families(), "llama")
	infos, _ := synthetic(t, f, llamaConfig)
	const down = "model.layers.1.mlp.down_proj.weight"
	edit := func(change func(map[string]weights.Info)) []weights.Info {
		m := byName(infos)
		change(m)
		var all []weights.Info
		for _, i := range m {
			all = append(all, i)
		}
		return all
	}
	for _, c := range []struct {
		infos []weights.Info
		want  string
	}{
		{edit(func(m map[string]weights.Info) { delete(m, down) }),
			`tensor "` + down + `": is missing, but config.json requires it`},
		{edit(func(m map[string]weights.Info) { m[down] = weights.Info{Name: down, Shape: []int{6, 4}} }),
			`tensor "` + down + `": has shape [6 4], but config.json says [6 5] (+residual × -ffn)`},
		{edit(func(m map[string]weights.Info) { m[down] = weights.Info{Name: down, Shape: []int{6, 5, 1}} }),
			`tensor "` + down + `": has shape [6 5 1], but config.json says [6 5] (+residual × -ffn)`},
		{edit(func(m map[string]weights.Info) {
			m["x"] = weights.Info{Name: "model.layers.2.mlp.down_proj.weight", Shape: []int{6, 5}}
		}), `tensor "model.layers.2.mlp.down_proj.weight": belongs to layer 2, but config.json says num_hidden_layers 2 (0 to 1)`},
		{append(infos[:len(infos):len(infos)], infos[3]), `tensor "` + infos[3].Name + `": is listed twice`},
		{nil, "tensor \"model.embed_tokens.weight\": is missing, but config.json requires it\n"},
	} {
		_, err := f.Resolve([]byte(llamaConfig), c.infos)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %v\nwant %s", err, c.want)
		}
	}
	_, err := f.Resolve([]byte(llamaConfig), nil)
	if lines := strings.Split(fmt.Sprint(err), "\n"); len(lines) != maxProblems+1 || lines[maxProblems] != "and more problems" {
		t.Errorf("%v", err)
	}
}
