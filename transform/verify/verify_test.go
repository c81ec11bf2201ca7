package verify_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/verify"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

const everything = "scale,reorder,signs,shift,sparsify=0.2,grid=16,round=2"

func TestWhatConvertMakesIsAccepted(t *testing.T) {
	for _, d := range []weights.DType{weights.BF16, weights.F16, weights.F32, weights.F8E4M3, weights.F8E5M2, weights.I8} {
		for _, model := range []string{"llama-tiny", "gpt2-tiny"} {
			t.Run(d.String()+" "+model, func(t *testing.T) {
				t.Parallel()
				if testing.Short() && (d != weights.BF16 || model != "llama-tiny") {
					t.Skip("long, and the same goroutines as of the first")
				}
				blocks := `{"num_hidden_layers": 1, "n_layer": 1}` // the part between blocks is equal in all types
				if d == weights.BF16 {
					blocks = ""
				}
				src := testmodel.Folder(t, testmodel.Config(t, model, blocks), synth.Options{Seed: 1, DType: d, ShardBytes: 60_000})
				for passes, least := range map[string]float64{
					"scale,signs": 0, "scale,reorder,signs": 0, "shift=4/epilogue": 0, "scale,reorder,signs,shift": 0,
					"sparsify=2:4": 0, "sparsify=0.3/8x4": 0, "sparsify=0.3/runs": 0, "grid=4": 0, "round=3": 0, "round=2/truncate": 0,
					"reorder,grid,round": 15, everything: 0, everything + " ": 8,
				} {
					r := report(t, src, convert(t, src, strings.TrimSpace(passes), least))
					if !r.OK {
						t.Errorf("%s: %s", passes, problems(r))
					}
					if want := !strings.Contains(passes, "epilogue") || d == weights.I8; r.DropIn != want {
						t.Errorf("%s: drop-in %v", passes, r.DropIn)
					}
				}
			})
		}
	}
}

func TestClasses(t *testing.T) {
	const up, norm = "model.layers.0.mlp.up_proj.weight", "model.norm.weight"
	src := source(t, "llama-tiny", 0)

	r := report(t, src, convert(t, src, "reorder,signs", 0))
	wantOK(t, r)
	x := tensorOf(t, r, up)
	if x.Class != verify.Exact || x.SNR != nil || x.BitsZeroed != 0 || x.Relation == nil || x.Relation.Source != "found" || x.Kind != "mlp.up_proj" || !x.Linear {
		t.Errorf("%+v", x)
	}
	if x.Relation.RowsMoved < 50 || x.Relation.ColsMoved < 20 || x.Relation.RowsFlipped+x.Relation.ColsFlipped == 0 || x.Relation.RowsScaled != 0 {
		t.Errorf("%+v", x.Relation)
	}

	r = report(t, src, convert(t, src, "round=3", 0))
	wantOK(t, r)
	x = tensorOf(t, r, up)
	if x.Class != verify.Lossy || x.BitsZeroed != 3 || x.SNR == nil || *x.SNR < 30 || *x.SNR > 45 || x.Relation != nil {
		t.Errorf("%+v", x)
	}
	if x = tensorOf(t, r, norm); x.Class != verify.Identical || x.SNR != nil || x.Linear {
		t.Errorf("%+v", x)
	}

	r = report(t, src, convert(t, src, "sparsify=0.5/element", 0))
	if x = tensorOf(t, r, up); x.Class != verify.Lossy || x.ZerosAdded != 100*48/2 {
		t.Errorf("%+v", x)
	}

	gpt := source(t, "gpt2-tiny", 0)
	r = report(t, gpt, convert(t, gpt, "shift", 0))
	wantOK(t, r)
	x = tensorOf(t, r, "transformer.h.0.mlp.c_fc.weight")
	if x.Class != verify.Compensated || x.Shift == nil || *x.Shift <= 0 || *x.Shift != math.Exp2(math.Round(math.Log2(*x.Shift))) {
		t.Errorf("%+v", x)
	}
}

func TestNaNIsCountedAndKept(t *testing.T) {
	const up = "model.layers.0.mlp.up_proj.weight"
	src := source(t, "llama-tiny", 0)
	edit(t, src, up, func(data []byte) { copy(data[100:], []byte{0xC1, 0x7F, 0x80, 0xFF}) })
	out := convert(t, src, "scale,reorder,signs,grid=8,round=2", 0)
	r := report(t, src, out)
	wantOK(t, r)
	if x := tensorOf(t, r, up); x.NonFinite != 2 {
		t.Errorf("%d non-finite values", x.NonFinite)
	}
	f, _ := weights.BF16.Format()
	edit(t, out, up, func(data []byte) {
		for i := range len(data) / 2 {
			if !f.Finite(f.Elem(data, i)) {
				f.SetElem(data, i, 0x7FC2)
				return
			}
		}
	})
	vouch(t, out)
	wantProblem(t, report(t, src, out), "value is NaN or infinite in only one of the models")
}

func TestOneBitIsSeen(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and without shared data for the race detector")
	}
	src := source(t, "llama-tiny", 0)
	m := open(t, src)
	for i, info := range m.Infos() {
		out := convert(t, src, []string{"scale,reorder,signs", ""}[i%2]+[]string{"", "round=3"}[i%2], 0)
		bit := i * 7919 % (8 * int(info.Size()))
		edit(t, out, info.Name, func(data []byte) { data[bit/8] ^= 1 << (bit % 8) })
		wantProblem(t, report(t, src, out), "the manifest says")
		vouch(t, out)
		r := report(t, src, out)
		if x := tensorOf(t, r, info.Name); x.Problem == "" && (i%2 == 0 || !x.Linear) {
			t.Errorf("%s: bit %d: no problem: %+v", info.Name, bit, x)
		}
	}
}

func TestBrokenTensorsAreSeen(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and without shared data for the race detector")
	}
	const up, gate = "model.layers.1.mlp.up_proj.weight", "model.layers.1.mlp.gate_proj.weight"
	const row = 48 * 2
	src := source(t, "llama-tiny", 0)
	for _, c := range []struct {
		name, passes, tensor, want string
		change                     func(data []byte)
	}{
		{"two rows swapped", "reorder", up, up + ": the order, signs or exponents differ from those in the manifest", func(data []byte) {
			first := append([]byte{}, data[:row]...)
			copy(data, data[row:2*row])
			copy(data[row:], first)
		}},
		{"two rows swapped, nothing moved", "round=2", up, up, func(data []byte) {
			first := append([]byte{}, data[:row]...)
			copy(data, data[row:2*row])
			copy(data[row:], first)
		}},
		{"a row negated", "reorder,signs", up, up + ": the order, signs or exponents differ from those", func(data []byte) {
			for i := 1; i < row; i += 2 {
				data[i] ^= 0x80
			}
		}},
		{"a row negated under a grid", "grid=8", up, up, func(data []byte) {
			for i := 1; i < row; i += 2 {
				data[i] ^= 0x80
			}
		}},
		{"off the grid", "grid=8", up, "is not a multiple of 2^", func(data []byte) { data[0] |= 1 }},
		{"low bits", "round=3", up, "the plan zeroes 3 low bits, and 0 are zero", func(data []byte) { data[0] |= 1 }},
		{"three of four", "sparsify=2:4", up, "by the manifest's steps it should be 0", func(data []byte) {
			for i := range 4 {
				if data[2*i] == 0 && data[2*i+1] == 0 {
					data[2*i], data[2*i+1] = 0x80, 0x3C
					return
				}
			}
		}},
		{"not rounded at all", "round=3", gate, "the plan zeroes 3 low bits", nil},
		{"left behind", "reorder", gate, gate, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := convert(t, src, c.passes, 0)
			wantOK(t, report(t, src, out))
			original, _ := open(t, src).Tensor(c.tensor)
			edit(t, out, c.tensor, func(data []byte) {
				if c.change == nil {
					copy(data, original.Data)
				} else {
					c.change(data)
				}
			})
			vouch(t, out)
			wantProblem(t, report(t, src, out), c.want)
		})
	}
}

func TestWrongFoldsAreSeen(t *testing.T) {
	src := source(t, "gpt2-tiny", weights.F32)
	for _, name := range []string{"attn.c_attn.weight", "attn.c_attn.bias", "ln_1.weight", "ln_1.bias"} {
		out := convert(t, src, "shift", 0)
		edit(t, out, "transformer.h.0."+name, func(data []byte) { data[42] ^= 0x10 })
		vouch(t, out)
		wantProblem(t, report(t, src, out), "transformer.h.0."+name+": element [")
	}
}

func TestWrongManifestsAreSeen(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and without shared data for the race detector")
	}
	const up = "model.layers.0.mlp.up_proj.weight"
	src := source(t, "llama-tiny", 0)
	swap := func(list any, i, j int) {
		l := list.([]any)
		l[i], l[j] = l[j], l[i]
	}
	outlook := func(m map[string]any) []any { return m["plan"].(map[string]any)["outlook"].([]any) }
	for _, c := range []struct {
		name, passes, want string
		least              float64
		change             func(m map[string]any)
	}{
		{"another order", "reorder", "differ from those in the manifest", 0, func(m map[string]any) { swap(steps(m, "reorder")[0]["reorder"], 3, 4) }},
		{"no permutation", "reorder", "does not fit the source: reorder: index", 0, func(m map[string]any) {
			order := steps(m, "reorder")[0]["reorder"].([]any)
			order[0] = order[1]
		}},
		{"a sign less", "signs", "differ from those in the manifest", 0, func(m map[string]any) {
			step := steps(m, "signs")[0]
			step["signs"] = step["signs"].([]any)[1:]
		}},
		{"another exponent", "scale", "differ from those in the manifest", 0, func(m map[string]any) {
			e := steps(m, "scale")[0]["scale"].([]any)
			for i := range e {
				if e[i].(json.Number) != "0" {
					e[i] = json.Number("0")
					return
				}
			}
		}},
		{"another index", "reorder", `the model has no index "layers.9.ffn"`, 0, func(m map[string]any) { steps(m, "reorder")[0]["index"] = "layers.9.ffn" }},
		{"another tensor", "round=2", `tensor "nobody": the source has no such tensor`, 0, func(m map[string]any) { steps(m, "round")[0]["tensor"] = "nobody" }},
		{"a step less", "round=2", up + ": ", 0, func(m map[string]any) {
			for _, s := range steps(m, "round") {
				if s["tensor"] == up {
					s["tensor"] = "model.norm.weight"
				}
			}
		}},
		{"more bits", "round=2", "the plan zeroes 3 low bits, and 2 are zero", 0, func(m map[string]any) {
			for _, s := range steps(m, "round") {
				s["round"].(map[string]any)["zeroed"] = 3
			}
		}},
		{"a better ratio", "round", "dB, and the manifest claims 99.00 dB", 30, func(m map[string]any) {
			for _, o := range outlook(m) {
				o.(map[string]any)["snr_db"] = 99
			}
		}},
		{"a tighter budget", "round", "dB, and the budget requires at least 90.00 dB", 30, func(m map[string]any) {
			m["plan"].(map[string]any)["request"].(map[string]any)["min_snr_db"] = 90
		}},
		{"another digest", "round=2", "the file was changed", 0, func(m map[string]any) {
			m["shards"].([]any)[0].(map[string]any)["output_sha256"] = strings.Repeat("0", 64)
		}},
		{"another source digest", "round=2", "the file was changed", 0, func(m map[string]any) {
			m["shards"].([]any)[0].(map[string]any)["source_sha256"] = strings.Repeat("0", 64)
		}},
		{"a shard less", "round=2", "does not name the shard model-00002-of-00002.safetensors of the output", 0, func(m map[string]any) { m["shards"] = m["shards"].([]any)[:1] }},
		{"another shard", "round=2", "names the shard other.safetensors, which is not in the output", 0, func(m map[string]any) {
			m["shards"].([]any)[0].(map[string]any)["file"] = "other.safetensors"
		}},
		{"another model", "round=2", "it was made for another model", 0, func(m map[string]any) {
			m["plan"].(map[string]any)["model"].(map[string]any)["sha256"] = strings.Repeat("0", 64)
		}},
		{"a shard twice", "round=2", "names the shard model-00001-of-00002.safetensors twice", 0, func(m map[string]any) {
			m["shards"] = append(m["shards"].([]any), m["shards"].([]any)[0])
		}},
		{"another family", "round=2", `it was made for family gpt2, and the source's family is llama: give the family that the plan was made with`, 0, func(m map[string]any) {
			m["plan"].(map[string]any)["model"].(map[string]any)["family"] = "gpt2"
		}},
		{"no family", "round=2", `it was made without a family, and the source's family is llama`, 0, func(m map[string]any) {
			m["plan"].(map[string]any)["model"].(map[string]any)["family"] = ""
		}},
		{"a step twice", "round=2", "round: tensor", 0, func(m map[string]any) {
			steps := m["plan"].(map[string]any)["steps"].([]any)
			m["plan"].(map[string]any)["steps"] = append(steps, steps[0])
		}},
		{"an empty block", "sparsify=0.3/8x4", "blocks of 0x4 are not possible", 0, func(m map[string]any) {
			steps(m, "sparsify")[0]["sparsify"].(map[string]any)["block"] = []int{0, 4}
		}},
		{"a constant that is not free", "shift=4/epilogue", "changes the function", 0, func(m map[string]any) {
			delete(steps(m, "shift")[0]["shift"].(map[string]any), "epilogue")
		}},
		{"version", "round=2", "the manifest has version 2", 0, func(m map[string]any) { m["manifest_version"] = 2 }},
		{"no plan", "round=2", "invalid plan", 0, func(m map[string]any) { delete(m, "plan") }},
		{"drop-in", "shift=4/epilogue", "but its steps say the opposite", 0, func(m map[string]any) { m["plan"].(map[string]any)["drop_in"] = true }},
		{"drop-in outside", "shift=4/epilogue", "drop_in", 0, func(m map[string]any) { m["drop_in"] = true }},
		{"a fold without a family", "round=2", up + ": the claimed fold needs", 0, func(m map[string]any) {
			for _, s := range steps(m, "round") {
				s["pass"], s["shift"] = "shift", map[string]any{"bias": "a", "weight": "b"}
				delete(s, "round")
			}
			os.Remove(filepath.Join(src, "config.json"))
			m["plan"].(map[string]any)["model"].(map[string]any)["family"] = ""
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := convert(t, src, c.passes, c.least)
			wantOK(t, report(t, src, out))
			editManifest(t, out, c.change)
			wantProblem(t, report(t, src, out), c.want)
		})
	}
}

func TestBrokenFoldersAreSeen(t *testing.T) {
	src := source(t, "llama-tiny", 0)
	for want, change := range map[string]func(out string) error{
		"has no lowtoggle.json": func(out string) error { return os.Remove(filepath.Join(out, plan.ManifestName)) },
		"file tokenizer.json differs": func(out string) error {
			return os.WriteFile(filepath.Join(out, "tokenizer.json"), []byte(`{"a": 2}`), 0o666)
		},
		"file tokenizer.json is missing":                   func(out string) error { return os.Remove(filepath.Join(out, "tokenizer.json")) },
		"file more.txt of the output is not in the source": func(out string) error { return os.WriteFile(filepath.Join(out, "more.txt"), nil, 0o666) },
		"file config.json differs": func(out string) error {
			js, err := os.ReadFile(filepath.Join(out, "config.json"))
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(out, "config.json"), append(js, '\n'), 0o666)
		},
	} {
		out := convert(t, src, "round=2", 0)
		ok(t, change(out))
		wantProblem(t, report(t, src, out), want)
	}
}

// rebuilt writes a folder's first shard again with other tensors.
func rebuilt(t *testing.T, dir string, change func(infos []weights.Info) []weights.Info) {
	t.Helper()
	m := open(t, dir)
	shard := m.Shards[0]
	head, placed, err := weights.EncodeHeader(change(append([]weights.Info{}, shard.Tensors...)), nil)
	ok(t, err)
	weightMap := map[string]string{}
	for _, other := range m.Shards[1:] {
		for _, info := range other.Tensors {
			weightMap[info.Name] = filepath.Base(other.Path)
		}
	}
	for _, info := range placed {
		data := make([]byte, info.Size())
		if x, found := shard.Tensor(info.Name); found {
			copy(data, x.Data)
		}
		head = append(head, data...)
		weightMap[info.Name] = filepath.Base(shard.Path)
	}
	replace(t, shard.Path, head)
	ok(t, os.WriteFile(m.Index, weights.EncodeIndex(weightMap, 0), 0o666))
	vouch(t, dir)
}

func TestOtherTensorsAreSeen(t *testing.T) {
	src := source(t, "llama-tiny", 0)
	out := convert(t, src, "round=2", 0)
	rebuilt(t, out, func(infos []weights.Info) []weights.Info { return infos[1:] })
	wantProblem(t, report(t, src, out), `is missing from the output`)

	out = convert(t, src, "round=2", 0)
	rebuilt(t, out, func(infos []weights.Info) []weights.Info {
		return append(infos, weights.Info{Name: "more", DType: weights.F32, Shape: []int{3}})
	})
	wantProblem(t, report(t, src, out), `tensor "more" of the output is not in the source`)

	out = convert(t, src, "round=2", 0)
	rebuilt(t, out, func(infos []weights.Info) []weights.Info {
		infos[0].Shape = append([]int{1}, infos[0].Shape...)
		return infos
	})
	wantProblem(t, report(t, src, out), "and the source's is BF16")
}

func TestWithoutAManifestTheDataStillTell(t *testing.T) {
	src := source(t, "llama-tiny", 0)
	for passes, want := range map[string]verify.Class{"reorder,signs": verify.Exact, "round=2": verify.Lossy, "": verify.Identical} {
		if passes == "" {
			passes = "scale" // passes over a tensor that scale does not change
		}
		out := convert(t, src, passes, 0)
		ok(t, os.Remove(filepath.Join(out, plan.ManifestName)))
		r := report(t, src, out)
		if r.OK || r.Plan != nil {
			t.Errorf("%s: ok without a manifest", passes)
		}
		x := tensorOf(t, r, "model.layers.0.mlp.gate_proj.weight")
		if want == verify.Identical {
			x = tensorOf(t, r, "model.embed_tokens.weight")
		}
		if x.Class != want || x.Problem != "" {
			t.Errorf("%s: %+v", passes, x)
		}
	}
}

func TestCancelledBeforeItBegins(t *testing.T) {
	src := source(t, "llama-tiny", 0)
	out := convert(t, src, "reorder,round=2", 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := transform.Verify(ctx, open(t, src), open(t, out), transform.VerifyOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
