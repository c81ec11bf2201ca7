package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cli"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/demo"
)

// frozenFile has the SHA-256 of the output of each conversion, one per line. A change of the file is a separate commit with the
// reason.
const frozenFile = "testdata/frozen.txt"

// conversion is a command line whose result is frozen.
type conversion struct {
	model string // a configuration of package synth, or "demo"
	args  []string
}

func (c conversion) String() string { return c.model + " " + strings.Join(c.args, " ") }

// frozenConversions returns every family with every recipe, every pass alone, and a conversion with a budget of loss.
func frozenConversions() (all []conversion) {
	for _, f := range arch.Families() {
		for _, r := range transform.Recipes {
			all = append(all, conversion{f.Name + "-tiny", []string{"--recipe", r.Name}})
		}
	}
	for _, model := range []string{"llama-tiny", "gpt2-tiny", "qwen3_moe-tiny"} {
		for _, passes := range []string{"scale", "scale=labels", "reorder", "signs", "reorder,signs", "shift", "shift=2", "shift=4/epilogue", "sparsify=0.1",
			"sparsify=0.2/element", "sparsify=0.1/runs", "sparsify=0.3/16x1", "sparsify=2:4", "trellis=0.01", "grid=4", "round=4", "round=3/truncate",
			"sparsify=0.1,grid=8,round=2", "scale,reorder,signs,grid=2"} {
			all = append(all, conversion{model, []string{"--passes", passes, "--workload", "prefill=0.5,decode=0.5"}})
		}
		all = append(all, conversion{model, []string{"--passes", "sparsify,trellis,grid,round", "--min-snr", "20"}},
			conversion{model, []string{"--passes", "grid,round", "--min-snr", "25", "--role", "streaming"}},
			conversion{model, []string{"--passes", "scale,reorder,signs,grid=4", "--role", "streaming", "--workload", "prefill"}})
	}
	tokens := []string{"--tokens", "TOKENS"}
	for _, args := range [][]string{{"--max-loss", "1%"}, {"--passes", "prune,trellis,compensate", "--max-loss", "0.5%", "--workload", "decode"},
		{"--passes", "compensate=0.01,grid=8"}, {"--passes", "prune=0.1,compensate,round=4"}, {"--passes", "trellis=0.01,compensate,sparsify=0.1"}} {
		all = append(all, conversion{"demo", append(args, tokens...)})
	}
	// Small enough for an emulated processor.
	return append(all, conversion{"llama-tiny", append([]string{"--max-loss", "1%"}, tokens...)},
		conversion{"gpt2-tiny", append([]string{"--passes", "prune,trellis,compensate", "--max-loss", "1%", "--workload", "decode"}, tokens...)})
}

var (
	frozenOnly    = flag.String("frozen-only", "", "run only the frozen conversions that match this pattern")
	frozenVariant = flag.String("frozen-variant", "", "add to "+bytesFile+" that this kind of processor or build gives the frozen bytes, or does not")
)

// TestFrozen checks that outputs and plans have the recorded bytes, with 1 worker and with 3.
func TestFrozen(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing in it is shared by goroutines")
	}
	want := map[string]string{}
	if !*goldenfile.Update {
		want = frozenDigests(t)
	}
	only, err := regexp.Compile(*frozenOnly)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]string{}
	models := t.TempDir()
	for i, c := range frozenConversions() {
		if !only.MatchString(c.String()) {
			continue
		}
		model := filepath.Join(models, c.model)
		if _, err := os.Stat(model); err != nil {
			if c.model == "demo" {
				demoModel(t, model)
			} else {
				run(t, "synth", c.model, model, "--seed", "1", "--shard-size", "60kB")
			}
		}
		args := slices.Clone(c.args)
		if j := slices.Index(args, "TOKENS"); j >= 0 {
			args[j] = filepath.Join(model, "tokens.safetensors")
			if c.model != "demo" {
				args[j] = filepath.Join(models, "random.safetensors")
				randomTokens(t, args[j])
			}
		}
		workers := []string{"1", "3"}
		if c.model != "llama-tiny" { // other models run with one of the two numbers of workers
			workers = workers[i%2:][:1]
		}
		for _, workers := range workers {
			out := filepath.Join(t.TempDir(), "out")
			run(t, append([]string{"convert", model, out, "--workers", workers}, args...)...)
			weights, planned := digest(t, out)
			for what, sum := range map[string]string{"weights": weights, "plan": planned} {
				name := what + ": " + c.String()
				if before, ok := have[name]; ok && before != sum {
					t.Errorf("%s: other bytes with %s workers", name, workers)
				}
				have[name] = sum
			}
			if err := os.RemoveAll(out); err != nil {
				t.Fatal(err)
			}
		}
		if *frozenVariant != "" {
			recordBytes(t, *frozenVariant, c, have, want)
		}
	}
	if *goldenfile.Update {
		var b bytes.Buffer
		for _, name := range slices.Sorted(maps.Keys(have)) {
			fmt.Fprintf(&b, "%s  %s\n", have[name], name)
		}
		if err := os.WriteFile(frozenFile, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if have[name] != want[name] {
			t.Errorf("other bytes than before: %s", name)
		}
	}
	if len(have) != len(want) && *frozenOnly == "" {
		t.Errorf("%d results, %d are frozen", len(have), len(want))
	}
}

// frozenDigests reads the frozen digests by their names.
func frozenDigests(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(frozenFile)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(data)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		want[name] = sum
	}
	return want
}

func run(t *testing.T, args ...string) {
	t.Helper()
	var out, problems bytes.Buffer
	const short = 3 // the exit status of a budget that allows no change, which is a valid result
	if status := cli.Main(t.Context(), append([]string{"lowtoggle"}, append(args, "--quiet")...), &out, &problems); status != 0 && status != short {
		t.Fatalf("%v: exit status %d\n%s", args, status, problems.String())
	}
}

// digest returns the digests of a converted folder's shards, and of its plan without texts.
func digest(t *testing.T, dir string) (weights, planned string) {
	t.Helper()
	h := sha256.New()
	names, err := filepath.Glob(filepath.Join(dir, "*.safetensors*"))
	if err != nil || len(names) == 0 {
		t.Fatal(dir, names, err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(h, "%s %d\n", filepath.Base(name), len(data))
		h.Write(data)
	}
	js, err := os.ReadFile(filepath.Join(dir, plan.ManifestName))
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Plan map[string]any `json:"plan"`
	}
	if err := json.Unmarshal(js, &manifest); err != nil {
		t.Fatal(err)
	}
	delete(manifest.Plan, "notes")
	outlook, _ := manifest.Plan["outlook"].([]any)
	for _, o := range outlook {
		delete(o.(map[string]any), "missed")
	}
	if js, err = json.Marshal(manifest.Plan); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(js)
	return hex.EncodeToString(h.Sum(nil)), hex.EncodeToString(sum[:])
}

// randomTokens writes 48 sequences of 32 tokens, which are in every tiny model's vocabulary.
func randomTokens(t *testing.T, path string) {
	t.Helper()
	const sequences, length, vocabulary = 48, 32, 96
	header := fmt.Sprintf(`{"tokens":{"dtype":"I32","shape":[%d,%d],"data_offsets":[0,%d]}}`, sequences, length, 4*sequences*length)
	b := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	rng := rand.New(rand.NewPCG(1, 2))
	for range sequences * length {
		b = binary.LittleEndian.AppendUint32(b, rng.Uint32N(vocabulary))
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// demoModel writes the embedded model.
func demoModel(t *testing.T, dir string) {
	t.Helper()
	if err := demo.Write(dir); err != nil {
		t.Fatal(err)
	}
}
