package transform_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/card"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

func TestSameBytesForAnyNumberOfWorkers(t *testing.T) {
	for _, c := range []struct {
		model, passes string
		least         float64
	}{
		{"llama-tiny", "scale,reorder,signs,shift=4/epilogue,sparsify=0.2,grid=16,round=2", 0},
		{"gpt2-tiny", "scale,reorder,signs,shift,sparsify,grid,round", 12},
	} {
		m, others := tiny(t, c.model, 0), []int{2, 7}
		if testing.Short() {
			m = open(t, folder(t, config(t, c.model, `{"num_hidden_layers": 1, "n_layer": 1}`), synth.Options{ShardBytes: 30_000}))
			others = others[1:]
		}
		var first []byte
		var want map[string]string
		for _, workers := range append([]int{1}, others...) {
			o := options(t, c.passes, c.least)
			o.Workers = workers
			p, err := transform.Plan(t.Context(), m, o)
			ok(t, err)
			out := filepath.Join(t.TempDir(), "out")
			_, err = transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Workers: workers})
			ok(t, err)
			if first == nil {
				first, want = testplan.Encoded(t, p), files(t, out)
			}
			if !bytes.Equal(testplan.Encoded(t, p), first) {
				t.Errorf("%s: %d workers make another plan", c.model, workers)
			}
			sameFiles(t, files(t, out), want)
		}
	}
}

func TestNothingToDoGivesTheSameFiles(t *testing.T) {
	for _, d := range testmodel.DTypes {
		dir := folder(t, config(t, "llama-tiny", ""), synth.Options{DType: d, ShardBytes: 60_000})
		// A header with metadata, odd spaces and unsorted keys does not change.
		m := open(t, dir)
		shard := m.Shards[0]
		var fields map[string]json.RawMessage
		head := shard.Head()
		ok(t, json.Unmarshal(head[8:], &fields))
		fields["__metadata__"] = json.RawMessage(`{"format": "pt",   "by": "hand"}`)
		js, err := json.MarshalIndent(fields, "", "   ")
		ok(t, err)
		js = append(js, bytes.Repeat([]byte(" "), 8-len(js)%8)...)
		file := append([]byte{byte(len(js)), byte(len(js) >> 8), byte(len(js) >> 16), 0, 0, 0, 0, 0}, js...)
		file = append(file, shard.Data()...)
		ok(t, os.Remove(shard.Path))
		ok(t, os.WriteFile(shard.Path, file, 0o666))

		m = open(t, dir)
		got := files(t, applied(t, m, planOf(t, m)))
		delete(got, plan.ManifestName)
		delete(got, card.Name)
		sameFiles(t, got, files(t, dir))
	}
}

func TestConvertingAgainKeepsTheOldManifest(t *testing.T) {
	m := tiny(t, "llama-tiny", 0)
	first := applied(t, m, makePlan(t, m, "reorder", 0))
	again := open(t, first)
	second := applied(t, again, makePlan(t, again, "round=2", 0))
	man, err := plan.ReadManifest(second)
	ok(t, err)
	var was, is bytes.Buffer
	ok(t, json.Compact(&was, []byte(files(t, first)[plan.ManifestName])))
	ok(t, json.Compact(&is, man.Previous))
	if was.String() != is.String() {
		t.Errorf("the old manifest became %s", man.Previous)
	}
	ok(t, os.WriteFile(filepath.Join(first, plan.ManifestName), []byte("{"), 0o666))
	_, err = transform.Apply(t.Context(), again, makePlan(t, again, "", 0), filepath.Join(t.TempDir(), "out"), transform.ApplyOptions{})
	wantError(t, err, plan.ManifestName, "is not JSON")
}

func TestRoundAndGridOfEveryType(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and without shared data for the race detector")
	}
	for _, d := range testmodel.DTypes {
		for _, model := range []string{"llama-tiny", "gpt2-tiny"} {
			m := tiny(t, model, d)
			p := makePlan(t, m, "grid=8,round=2", 0)
			result := open(t, applied(t, m, p))
			steps := plan.ByTensor(p.Steps)
			layout := layoutOf(t, m)
			ok(t, m.Each(func(x weights.Tensor) error {
				if linear := layout.Claims[x.Name].Role == arch.Linear; linear != (len(steps[x.Name]) == 2) {
					t.Fatalf("%s: %d steps", x.Name, len(steps[x.Name]))
				}
				f, _ := x.DType.Format()
				_, cols := x.Matrix()
				want := bytes.Clone(x.Data)
				for i := range x.Len() {
					b := f.Elem(want, i)
					for _, s := range steps[x.Name] {
						out := []int{i / cols, i % cols}[layout.Claims[x.Name].OutAxis]
						switch d := s.Data.(type) {
						case pass.Steps:
							b = f.Grid(d.Exponents[out]).Nearest(b)
						case pass.Bits:
							b = f.Round(b, d.Zeroed, d.Truncate)
						}
					}
					f.SetElem(want, i, b)
				}
				if got := tensorOf(t, result, x.Name); !bytes.Equal(got.Data, want) {
					t.Errorf("%s %s differs", d, x.Name)
				}
				return nil
			}))
		}
	}
}

// plant writes values that are not finite into every matrix: NaN with odd bits, and infinities if the type has them.
func plant(t *testing.T, dir string) {
	edit(t, dir, func(info weights.Info, data []byte) {
		f, known := info.DType.Format()
		if !known || !f.IsFloat() || len(info.Shape) < 2 {
			return
		}
		nan := f.SignMask()<<1 - 1
		if f.ExpBits > 4 {
			nan -= f.MantMask() >> 1
		}
		for i, b := range []uint32{nan, nan &^ f.SignMask(), f.MaxFinite + 1, f.SignMask() | (f.MaxFinite + 1)} {
			f.SetElem(data, (i+1)*info.Len()/7, b)
		}
	})
}

func nonFinite(x weights.Tensor) []uint32 {
	f, known := x.DType.Format()
	var list []uint32
	for i := range x.Len() {
		if b := f.Elem(x.Data, i); known && !f.Finite(b) {
			list = append(list, b)
		}
	}
	slices.Sort(list)
	return list
}

func TestNaNAndInfinityAreKept(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and without shared data for the race detector")
	}
	for _, d := range []weights.DType{weights.BF16, weights.F16, weights.F32, weights.F8E4M3, weights.F8E5M2} {
		for _, model := range []string{"llama-tiny", "gpt2-tiny"} {
			dir := folder(t, config(t, model, `{"num_hidden_layers": 1, "n_layer": 1}`), synth.Options{DType: d})
			plant(t, dir)
			m := open(t, dir)
			for _, passes := range []string{
				"scale", "reorder", "signs", "shift", "shift=4/epilogue", "grid=8", "round=2", "round=1/truncate",
				"sparsify=2:4", "sparsify=0.3/element", "sparsify=0.3/4x4", "sparsify=0.3/runs",
				"scale,reorder,signs,shift,sparsify=0.3,grid=8,round=2",
			} {
				result := open(t, applied(t, m, makePlan(t, m, passes, 0)))
				ok(t, m.Each(func(x weights.Tensor) error {
					before, after := nonFinite(x), nonFinite(tensorOf(t, result, x.Name))
					if !slices.Equal(before, after) {
						t.Errorf("%s %s %s %s: %#x became %#x", d, model, passes, x.Name, before, after)
					}
					return nil
				}))
			}
		}
	}
}

func TestNaNIsCounted(t *testing.T) {
	dir := folder(t, config(t, "llama-tiny", ""), synth.Options{})
	plant(t, dir)
	for _, o := range makePlan(t, open(t, dir), "round", 20).Predictions {
		if o.NonFinite != 4 {
			t.Errorf("%s: %d values that are not finite, want 4", o.Tensor, o.NonFinite)
		}
	}
}

func TestScaleIsRefusedWhereItIsNotExact(t *testing.T) {
	for _, c := range []struct {
		name string
		bits uint32 // of element 3 of up_proj, which is scaled by 2^2
		bad  bool
	}{
		{"overflow", 0x7F00, true}, {"largest that fits", 0x7E7F, false},
		{"subnormal", 0x0001, true}, {"zero", 0x8000, false}, {"NaN", 0x7FC1, true}, {"infinity", 0xFF80, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := folder(t, config(t, "llama-tiny", ""), synth.Options{})
			edit(t, dir, func(info weights.Info, data []byte) {
				if info.Name == "model.layers.1.mlp.up_proj.weight" {
					data[6], data[7] = byte(c.bits), byte(c.bits>>8)
				}
			})
			m := open(t, dir)
			exps := make([]int, 100)
			exps[0] = 2
			out := filepath.Join(t.TempDir(), "out")
			_, err := transform.Apply(t.Context(), m, planOf(t, m, &plan.Step{Pass: "scale", Index: "layers.1.ffn", Data: exps}), out, transform.ApplyOptions{})
			if !c.bad {
				ok(t, err)
				return
			}
			wantError(t, err, m.Shards[0].Path, "model.layers.1.mlp.up_proj.weight", "element [0, 3] cannot be multiplied by ±2^2 exactly")
			if !errors.Is(err, plan.ErrInvalid) {
				t.Error("the error's class is not ErrPlan")
			}
			testplan.NothingAt(t, out)
		})
	}
}

// TestScalePlansOnlyWhatIsExact: for rows near the ends of the range, scale plans only steps that can be applied,
// also if two indices scale one value.
func TestScalePlansOnlyWhatIsExact(t *testing.T) {
	for _, d := range []weights.DType{weights.BF16, weights.F16, weights.F8E4M3, weights.F8E5M2, weights.I8} {
		dir := folder(t, config(t, "llama-tiny", ""), synth.Options{DType: d})
		edit(t, dir, func(info weights.Info, data []byte) {
			f, _ := info.DType.Format()
			for i := range info.Len() {
				if b := f.Elem(data, i); f.IsFloat() && b&f.ExpMask() > 0 && len(info.Shape) == 2 {
					_, cols := info.Matrix()
					e := 1 + (i/cols*7+i%cols*3)%12 // just above the subnormals, by row and by column
					f.SetElem(data, i, b&^f.ExpMask()|uint32(min(e, 1<<f.ExpBits-2))<<f.MantBits)
				}
			}
		})
		m := open(t, dir)
		p := makePlan(t, m, "scale", 0)
		if len(p.Steps) == 0 && d != weights.I8 { // the smallest values of I8 are odd
			t.Errorf("%s: the plan has no steps", d)
		}
		there, l := convert(t, m, p), layoutOf(t, m)
		sameBytes(t, convert(t, there, planOf(t, there, stepsOf(l, undo(l, exactSteps(l, p)))...)), m)
	}
}

func TestTensorsOutsideTheFamilyStay(t *testing.T) {
	dir := folder(t, config(t, "llama-tiny", ""), synth.Options{})
	alter(t, dir, func(infos []weights.Info, data map[string][]byte) []weights.Info {
		data["vision.weight"] = bytes.Repeat([]byte{1, 63}, 48*48)
		data["ids"] = []byte{1, 2, 3, 4, 5, 6, 7, 8}
		return append(infos, weights.Info{Name: "vision.weight", DType: weights.BF16, Shape: []int{48, 48}},
			weights.Info{Name: "ids", DType: weights.I64, Shape: []int{1}})
	})
	m := open(t, dir)
	p := makePlan(t, m, "scale,reorder,signs,round=4", 0)
	notes := strings.Join(p.Notes, "\n")
	for _, want := range []string{"vision.weight: not part of the family llama: left unchanged", "ids: not part of the family llama: left unchanged", "indices residual, final_norm are not changed"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
	for _, s := range p.Steps {
		if s.Index == "residual" {
			t.Errorf("%s on an index that is blocked", s.Pass)
		}
	}
	result := open(t, applied(t, m, p))
	for _, name := range []string{"vision.weight", "ids"} {
		if !bytes.Equal(tensorOf(t, result, name).Data, tensorOf(t, m, name).Data) {
			t.Errorf("%s changed", name)
		}
	}
	_, err := transform.Apply(t.Context(), m, planOf(t, m, &plan.Step{Pass: "reorder", Index: "residual", Data: sequence(48)}), filepath.Join(t.TempDir(), "out"), transform.ApplyOptions{})
	wantError(t, err, "invalid plan", "index residual cannot be changed")
}

// TestTypesThatAreNotTransformed: types with unknown values are moved, but not flipped, scaled or rounded. Types
// whose elements are not whole bytes are not even moved.
func TestTypesThatAreNotTransformed(t *testing.T) {
	for _, d := range []weights.DType{weights.F64, weights.F4} {
		dir := folder(t, config(t, "llama-tiny", ""), synth.Options{})
		const odd = "model.layers.0.mlp.down_proj.weight"
		alter(t, dir, func(infos []weights.Info, data map[string][]byte) []weights.Info {
			for i := range infos {
				if infos[i].Name == odd {
					infos[i].DType = d
					data[odd] = bytes.Repeat([]byte{1, 2, 3}, infos[i].Len()*d.Bits()/8/3)
				}
			}
			return infos
		})
		m := open(t, dir)
		p := makePlan(t, m, "scale,reorder,signs,round=4", 0)
		for _, s := range p.Steps {
			if s.Index == "layers.0.ffn" && (s.Pass != "reorder" || d == weights.F4) || s.Tensor == odd {
				t.Errorf("%s: the plan has a step of %s", d, s.Pass)
			}
		}
		if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes, fmt.Sprintf("signs: index layers.0.ffn is not changed: %s is of type %s", odd, d)) {
			t.Errorf("the notes do not say why:\n%s", notes)
		}
		applied(t, m, p)
		for _, s := range []*plan.Step{{Pass: "round", Tensor: odd, Data: pass.Bits{Zeroed: 1}}, {Pass: "signs", Index: "layers.0.ffn", Data: []int{0}}} {
			_, err := transform.Apply(t.Context(), m, planOf(t, m, s), filepath.Join(t.TempDir(), "out"), transform.ApplyOptions{})
			wantError(t, err, "invalid plan", odd, d.String())
		}
	}
}

func TestUnknownFamilyStillRounds(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"no config": func(dir string) error { return os.Remove(filepath.Join(dir, "config.json")) },
		"unknown": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"model_type": "novel"}`), 0o666)
		},
		"does not fit": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "config.json"), config(t, "llama-tiny", `{"num_hidden_layers": 7}`), 0o666)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, config(t, "llama-tiny", ""), synth.Options{})
			ok(t, change(dir))
			m := open(t, dir)
			p := makePlan(t, m, "round=4", 0)
			if len(p.Notes) == 0 || !strings.Contains(p.Notes[0], "counts as a linear layer") {
				t.Errorf("notes: %q", p.Notes)
			}
			result := open(t, applied(t, m, p))
			ok(t, m.Each(func(x weights.Tensor) error {
				want := bytes.Clone(x.Data)
				if len(x.Shape) == 2 && x.Name != "model.embed_tokens.weight" {
					f := formatOf(x.DType)
					for i := range x.Len() {
						f.SetElem(want, i, f.Round(f.Elem(want, i), 4, false))
					}
				}
				if !bytes.Equal(tensorOf(t, result, x.Name).Data, want) {
					t.Errorf("%s is not as expected", x.Name)
				}
				return nil
			}))
			for _, passes := range []string{"reorder", "signs", "scale", "shift"} {
				_, err := transform.Plan(t.Context(), m, options(t, passes, 0))
				wantError(t, err, passes+" needs ", "family")
			}
		})
	}
}

// TestBrokenConfig: a config.json that cannot be read is an error for every pass.
func TestBrokenConfig(t *testing.T) {
	for text, want := range map[string]string{"{broken": "invalid JSON", "null": "not an object", `{"model_type": 3}`: "model_type"} {
		dir := folder(t, config(t, "llama-tiny", ""), synth.Options{})
		ok(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o666))
		for _, passes := range []string{"round=4", "scale"} {
			_, err := transform.Plan(t.Context(), open(t, dir), options(t, passes, 0))
			wantError(t, err, dir, "config.json", want)
		}
	}
}

func TestCancelledBeforeItBegins(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, model := range []string{"llama-tiny", "gpt2-tiny"} {
		m := tiny(t, model, 0)
		for _, passes := range []string{"scale", "reorder", "signs", "shift", "sparsify=0.1", "grid=8", "round=2"} {
			if _, err := transform.Plan(ctx, m, options(t, passes, 0)); !errors.Is(err, context.Canceled) {
				t.Errorf("%s %s: error %v", model, passes, err)
			}
		}
		p := makePlan(t, m, "scale,shift,round=2", 0)
		out := filepath.Join(t.TempDir(), "out")
		if _, err := transform.Apply(ctx, m, p, out, transform.ApplyOptions{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v", model, err)
		}
		testplan.NothingAt(t, out)
	}
}

// sequence returns 0 to n−1.
func sequence(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
