package transform_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/reference"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// subject is a model that proves a family.
type subject struct {
	family string
	name   string // "llama-tiny/tied"
	config []byte
	fields object
	first  bool // a separate config, not a variant
	infos  []weights.Info
	// copies are optional tensors of the checkpoint, with the names of the tensors that they repeat: a head that is
	// tied to the embedding.
	copies map[string]string
}

// subjectsOf returns all tiny configs of a family and their variants, without repetition. Variants that are invalid
// for the family are left out.
func subjectsOf(t tb, family string) (all []subject) {
	t.Helper()
	file, seen := familyFile(t, family), map[string]bool{}
	for _, name := range synth.Names() {
		js, err := synth.Config(name)
		ok(t, err)
		if f, err := arch.Detect(js); !strings.HasSuffix(name, "-tiny") || err != nil || f.Name != family {
			continue
		}
		add := func(variant string, change func(fields object)) {
			s := subject{family: family, name: name + variant, first: variant == ""}
			ok(t, json.Unmarshal(js, &s.fields))
			change(s.fields)
			s.config, err = json.Marshal(s.fields)
			ok(t, err)
			f, err := arch.Detect(s.config)
			ok(t, err)
			infos, err := f.Expect(s.config)
			if err != nil && !s.first || seen[string(s.config)] {
				return
			}
			ok(t, err)
			seen[string(s.config)] = true
			s.infos = infos
			all = append(all, s)
			if s.copies = file.copies(t, f, s.config, infos); len(s.copies) > 0 {
				s.name, s.first = s.name+", head stored", false
				for name, of := range s.copies {
					info := s.info(of)
					info.Name = name
					s.infos = append(slices.Clone(s.infos), info)
				}
				all = append(all, s)
			}
		}
		add("", func(object) {})
		for _, field := range []string{"num_key_value_heads", "num_kv_heads"} {
			add("/one kv head", func(f object) { replace(f, field, 1.0) })
			add("/as many kv heads", func(f object) { replace(f, field, f["num_attention_heads"]) })
		}
		classes, _ := file["architectures"].([]any)
		for _, class := range classes {
			add(fmt.Sprintf("/as a %s", class), func(f object) { f["architectures"] = []any{class} })
		}
		flags := file.list("flags")
		for i, a := range flags {
			add(fmt.Sprintf("/%s changed", a["name"]), func(f object) { changeFlag(a, f) })
			for _, b := range flags[:i] {
				if file.joins(a["name"].(string), b["name"].(string)) {
					add(fmt.Sprintf("/%s and %s changed", b["name"], a["name"]), func(f object) {
						changeFlag(a, f)
						changeFlag(b, f)
					})
				}
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("package synth has no tiny config of the family %s to prove it", family)
	}
	return all
}

// replace changes an existing field.
func replace(fields object, field string, value any) {
	if fields[field] != nil && value != nil {
		fields[field] = value
	}
}

// present are values for fields whose presence is a flag.
var present = object{"final_logit_softcapping": 1.5, "q_lora_rank": 12.0, "n_shared_experts": 1.0}

// changeFlag changes a field so that a flag of the family changes, if it knows how.
func changeFlag(flag, fields object) {
	field := ""
	for _, f := range flag["fields"].([]any) {
		if field = f.(string); fields[field] != nil {
			break
		}
	}
	is, _ := flag["is"].([]any)
	switch value := fields[field]; {
	case strings.Contains(field, ".") || flag["unlike"] != nil:
	case flag["present"] == true && value == nil:
		fields[field] = present[field]
	case flag["present"] == true:
		delete(fields, field)
	case field == "architectures":
		fields[field] = is[:1]
	case slices.Contains(is, value) && strings.Contains(field, "act"):
		fields[field] = "gelu"
	case is != nil:
		fields[field] = is[0]
		if n, err := strconv.ParseFloat(is[0].(string), 64); err == nil {
			fields[field] = n
		}
	case value == nil:
		fields[field] = flag["default"] != true
	default:
		fields[field] = value != true
	}
}

// joins reports whether a condition of the file uses both flags.
func (f file) joins(a, b string) bool {
	for _, list := range []string{"dims", "indices", "tensors"} {
		for _, entry := range f.list(list) {
			for _, condition := range append([]string{"when"}, symmetryNames...) {
				text, _ := entry[condition].(string)
				words := strings.Fields(strings.ReplaceAll(text, "!", ""))
				if slices.Contains(words, a) && slices.Contains(words, b) {
					return true
				}
			}
		}
	}
	return false
}

// copies returns the optional layers over the vocabulary that a checkpoint with these tensors may also have. Each
// repeats the embedding.
func (f file) copies(t tb, family *arch.Family, config []byte, infos []weights.Info) map[string]string {
	l, err := family.Resolve(config, infos)
	ok(t, err)
	embedding := slices.IndexFunc(infos, func(i weights.Info) bool {
		c := l.Claims[i.Name]
		return c.Role == arch.Embedding && c.Axes[0].String() == "vocab"
	})
	if embedding < 0 {
		return nil
	}
	all := map[string]string{}
	for _, tensor := range f.list("tensors") {
		if tensor["optional"] != true || tensor["role"] != "linear" || tensor["axes"].([]any)[0] != "vocab" {
			continue
		}
		head := infos[embedding]
		head.Name = strings.TrimPrefix(tensor["name"].(string), "{root}")
		if with, err := family.Resolve(config, append(slices.Clone(infos), head)); err == nil && with.Claims[head.Name] != nil {
			all[head.Name] = infos[embedding].Name
		}
	}
	return all
}

// model writes a random checkpoint, in two or more files if possible.
func (s subject) model(t *testing.T) *weights.Model {
	t.Helper()
	return open(t, s.folder(t, synth.Options{Seed: 3, ShardBytes: 40_000}))
}

// folder writes a checkpoint with its copies.
func (s subject) folder(t *testing.T, o synth.Options) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	if s.copies == nil {
		ok(t, synth.Folder(t.Context(), s.config, dir, o))
		return dir
	}
	o.ShardBytes = 0
	ok(t, synth.Folder(t.Context(), s.config, dir, o))
	alter(t, dir, func(infos []weights.Info, data map[string][]byte) []weights.Info {
		for name, of := range s.copies {
			info := s.info(of)
			info.Name, info.DType, data[name] = name, infos[0].DType, data[of]
			infos = append(infos, info)
		}
		return infos
	})
	return dir
}

func (s subject) info(name string) weights.Info {
	return s.infos[slices.IndexFunc(s.infos, func(i weights.Info) bool { return i.Name == name })]
}

// sameCopies reports whether copies are still equal to their originals.
func (s subject) sameCopies(t tb, m *weights.Model) bool {
	for name, of := range s.copies {
		if !bytes.Equal(tensorOf(t, m, name).Data, tensorOf(t, m, of).Data) {
			return false
		}
	}
	return true
}

// coarse writes a checkpoint in float32 with values of few bits, so that folding norms and adding constants are
// exact: multiples of 1/16 in norms' weights, of 1/64 in their biases, and of 1/256 in all other tensors.
func (s subject) coarse(t *testing.T) *weights.Model {
	t.Helper()
	dir := s.folder(t, synth.Options{Seed: 4, DType: weights.F32})
	l := layoutOf(t, open(t, dir))
	edit(t, dir, func(info weights.Info, data []byte) {
		step := 1.0 / 256
		if l.Claims[info.Name].Role == arch.Norm {
			step = 1.0 / 16
			if strings.HasSuffix(info.Name, ".bias") {
				step = 1.0 / 64
			}
		}
		f := formatOf(info.DType)
		for i := range info.Len() {
			v := float64(f.Value(f.Elem(data, i)))
			f.SetElem(data, i, f.FromValue(float32(math.RoundToEven(v/step)*step)))
		}
	})
	return open(t, dir)
}

// outputs runs a model on fixed tokens, and on random values for images or audio.
func (s subject) outputs(t tb, m *weights.Model) [][]float64 {
	t.Helper()
	var in reference.Inputs
	vocabulary, _ := s.fields["vocab_size"].(float64)
	for t := range 6 {
		in.Tokens = append(in.Tokens, int32((t*7+3)%max(1, int(vocabulary))))
	}
	n, err := reference.Values(m)
	ok(t, err)
	rng := rand.New(rand.NewPCG(5, 0))
	for range n {
		in.Values = append(in.Values, rng.NormFloat64())
	}
	rows, err := reference.Run(m, in)
	ok(t, err)
	if len(rows) == 0 {
		t.Fatal("the model has no outputs")
	}
	return rows
}

// object is a JSON object of a family file.
type object = map[string]any

// file is a complete family file.
type file object

// familyFile reads an embedded family's file.
func familyFile(t tb, family string) (f file) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../weights/arch/families", family+".json"))
	ok(t, err)
	text, err = arch.Complete(text)
	ok(t, err)
	ok(t, json.Unmarshal(text, (*object)(&f)))
	return f
}

// list returns one of a file's lists.
func (f file) list(name string) (entries []object) {
	list, _ := f[name].([]any)
	for _, e := range list {
		entries = append(entries, e.(object))
	}
	return entries
}
