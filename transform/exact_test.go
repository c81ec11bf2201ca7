package transform

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/synth"
	"pgregory.net/rapid"
)

// subjects are the models whose symmetries are tried: the smallest that have every index.
var subjects = []struct{ name, config, changes string }{
	{"llama", "llama-tiny", `{"hidden_size": 24, "head_dim": 4, "intermediate_size": 10, "vocab_size": 32}`},
	{"llama tied", "llama-tiny", `{"hidden_size": 24, "head_dim": 4, "intermediate_size": 10, "vocab_size": 32, "tie_word_embeddings": true}`},
	{"llama with biases", "llama-tiny", `{"hidden_size": 24, "head_dim": 4, "intermediate_size": 10, "vocab_size": 32, "attention_bias": true, "mlp_bias": true}`},
	{"gpt2", "gpt2-tiny", `{"vocab_size": 32, "n_embd": 20}`},
	{"gpt2 untied", "gpt2-tiny", `{"vocab_size": 32, "n_embd": 20, "tie_word_embeddings": false}`},
}

// drawSymmetries draws what the family allows on every index, or nothing.
func drawSymmetries(t *rapid.T, l *arch.Layout) map[string]Symmetry {
	all := map[string]Symmetry{}
	for _, ix := range l.Indices {
		var s Symmetry
		if ix.Permute && rapid.Bool().Draw(t, "permute "+ix.Name) {
			s.Perm = rapid.Permutation(identity(ix.Len)).Draw(t, "order")
		}
		if ix.Sign && rapid.Bool().Draw(t, "flip "+ix.Name) {
			s.Flip = rapid.SliceOfN(rapid.Bool(), ix.Len, ix.Len).Draw(t, "signs")
		}
		if ix.Scale && rapid.Bool().Draw(t, "scale "+ix.Name) {
			s.Exp = rapid.SliceOfN(rapid.IntRange(-5, 5), ix.Len, ix.Len).Draw(t, "exponents")
		}
		all[ix.Name] = s
	}
	return all
}

// stepsOf writes symmetries as a plan's steps.
func stepsOf(l *arch.Layout, all map[string]Symmetry) []*Step {
	var steps []*Step
	for _, ix := range l.Indices {
		s := all[ix.Name]
		if s.Exp != nil {
			steps = append(steps, &Step{Pass: "scale", Index: ix.Name, Exponents: s.Exp})
		}
		if s.Perm != nil {
			steps = append(steps, &Step{Pass: "reorder", Index: ix.Name, Order: s.Perm})
		}
		if s.Flip != nil {
			flip := []int{}
			for label, f := range s.Flip {
				if f {
					flip = append(flip, label)
				}
			}
			steps = append(steps, &Step{Pass: "signs", Index: ix.Name, Flip: flip})
		}
	}
	return steps
}

// undo is the symmetries that lead back. An index that is counted per label of another, such as
// "layers.0.kv.1.v", is found in the result under the place that its label went to; one that rides
// on another, as a norm's scales on the residual stream, went along with that.
func undo(l *arch.Layout, all map[string]Symmetry) map[string]Symmetry {
	back := map[string]Symmetry{}
	for _, ix := range l.Indices {
		parts := strings.Split(ix.Name, ".")
		if n := len(parts); n > 2 {
			parent := l.Index(strings.Join(parts[:n-2], "."))
			if parent != nil && all[parent.Name].Perm != nil {
				label, _ := strconv.Atoi(parts[n-2])
				parts[n-2] = strconv.Itoa(slices.Index(all[parent.Name].Perm, label))
			}
		}
		s := all[ix.Name]
		rides := strings.HasSuffix(ix.Kind, "_norm")
		if rides {
			s.Perm = all["residual"].Perm
		}
		inverse := s.Inverse()
		if rides {
			inverse.Perm = nil
		}
		back[strings.Join(parts, ".")] = inverse
	}
	return back
}

// inFolders calls fn with a model of every subject and a way to make converted folders of it.
func inFolders(t *testing.T, fn func(t *rapid.T, m *weights.Model, convert func(*weights.Model, ...*Step) *weights.Model)) {
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			m := open(t, folder(t, config(t, s.config, s.changes), synth.Options{Seed: 3, ShardBytes: 9_000}))
			if len(m.Shards) < 2 {
				t.Fatal("the model has one shard")
			}
			rapid.Check(t, func(t *rapid.T) {
				tmp, err := os.MkdirTemp("", "exact")
				ok(t, err)
				defer os.RemoveAll(tmp)
				n := 0
				fn(t, m, func(m *weights.Model, steps ...*Step) *weights.Model {
					n++
					out := filepath.Join(tmp, strconv.Itoa(n))
					_, err := Apply(t.Context(), m, planOf(t, m, steps...), out, ApplyOptions{})
					ok(t, err)
					result, err := weights.Open(out)
					ok(t, err)
					t.Cleanup(func() { result.Close() })
					return result
				})
			})
		})
	}
}

// Whatever the family allows keeps the logits, and the inverse gives the input back byte for byte.
func TestExactPasses(t *testing.T) {
	inFolders(t, func(t *rapid.T, m *weights.Model, convert func(*weights.Model, ...*Step) *weights.Model) {
		l := layoutOf(t, m)
		all := drawSymmetries(t, l)
		there := convert(m, stepsOf(l, all)...)
		if !slices.Equal(networkOf(t, m).logits(), networkOf(t, there).logits()) {
			t.Fatal("the logits changed")
		}
		back := convert(there, stepsOf(l, undo(l, all))...)
		got, want := files(t, back.Dir), files(t, m.Dir)
		delete(got, ManifestName)
		sameFiles(t, got, want)
	})
}

// The check above is only worth something if it fails where a single symmetry is broken.
func TestFunctionCheckSeesASlip(t *testing.T) {
	for _, s := range subjects {
		dir := folder(t, config(t, s.config, s.changes), synth.Options{Seed: 3})
		before := networkOf(t, open(t, dir)).logits()
		first := ""
		edit(t, dir, func(info weights.Info, data []byte) {
			if linear := Linear(layoutOf(t, open(t, dir)), info); linear && first == "" {
				first = info.Name
				data[0], data[2] = data[2], data[0]
				data[1], data[3] = data[3], data[1]
			}
		})
		if slices.Equal(before, networkOf(t, open(t, dir)).logits()) {
			t.Errorf("%s: two values of %s changed places and the logits stayed", s.name, first)
		}
	}
}

func TestPlannedExactPassesKeepTheFunction(t *testing.T) {
	for _, s := range subjects {
		m := open(t, folder(t, config(t, s.config, s.changes), synth.Options{Seed: 4}))
		p := makePlan(t, m, "scale,reorder,signs", 0)
		done := map[string]bool{}
		for _, step := range p.Steps {
			done[step.Pass] = true
		}
		if !done["scale"] || !done["reorder"] || !done["signs"] {
			t.Errorf("%s: only %v were planned", s.name, done)
		}
		result := open(t, applied(t, m, p))
		if !slices.Equal(networkOf(t, m).logits(), networkOf(t, result).logits()) {
			t.Errorf("%s: the logits changed", s.name)
		}
	}
}

func TestInverseOfInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "labels")
		s := Symmetry{
			Perm: rapid.Permutation(identity(n)).Draw(t, "order"),
			Flip: rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "signs"),
			Exp:  rapid.SliceOfN(rapid.IntRange(-9, 9), n, n).Draw(t, "exponents"),
		}
		back := s.Inverse().Inverse()
		if !slices.Equal(back.Perm, s.Perm) || !slices.Equal(back.Flip, s.Flip) || !slices.Equal(back.Exp, s.Exp) {
			t.Fatalf("%+v became %+v", s, back)
		}
		if inv := (Symmetry{}).Inverse(); inv.Perm != nil || inv.Flip != nil || inv.Exp != nil {
			t.Fatal("nothing became something")
		}
	})
}
