//go:build linux

package main

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
)

// scenario is a command line and the disk that it starts on. Commands run in work; the source lies in src.
type scenario struct {
	name    string
	source  string   // the model in src
	before  []string // command lines that run without a fault before the trial
	args    []string // arguments of the program; with several processes, "{part}" is 1 or 2
	again   []string // added when the command runs again
	then    []string // command lines that run after the last run of the command
	result  string   // the file or folder below work that appears whole or not at all; empty: only the final state is checked
	replace bool     // the command can run again although its result exists
	edited  string   // the shard of the source that another program changes after the first run
	varies  []string // folders below work with intermediate results, whose bytes may differ and which may lack files
	seldom  int      // drawn this many times less often than others, because a run takes long; 0: as often
	// alike returns the part of a file below work that must be the same after every run; nil: the whole file.
	alike func(name, data string) string
}

var scenarios = []scenario{
	{name: "convert", source: "one", args: words("convert ../src out -q --workers 2 --passes grid=4,round=4"), again: words("--resume"), result: "out"},
	{name: "shards", source: "shards", args: words("convert ../src out -q --workers 2 --passes round=4"), again: words("--resume"), result: "out"},
	{name: "recipe", source: "shards", args: words("convert ../src out -q --workers 2 --recipe near-lossless"), again: words("--resume"), result: "out"},
	{name: "single", source: "one", args: words("convert ../src/model.safetensors out -q --workers 1 --passes round=4 --json"), again: words("--resume"), result: "out"},
	{name: "apply", source: "shards", args: words("convert ../src out -q --workers 2 --plan ../plan.json"), again: words("--resume"), result: "out"},
	{name: "edited", source: "shards", args: words("convert ../src out -q --workers 2 --passes round=4"), again: words("--resume"), result: "out",
		edited: "model-00003-of-00004.safetensors"},
	{name: "force", source: "shards", before: []string{"convert ../src out -q --workers 2 --passes round=2"},
		args: words("convert ../src out -q --workers 2 --passes round=4 --force"), again: words("--resume"), result: "out"},
	{name: "part", source: "shards", args: words("convert ../src out -q --workers 2 --plan ../plan.json --part {part}/2"), alike: alikeRecords,
		then: []string{"convert ../src out -q --plan ../plan.json --part 2/2", "convert ../src out -q --plan ../plan.json --finish"}},
	{name: "finish", source: "shards", before: []string{"convert ../src out -q --plan ../plan.json --part 1/2", "convert ../src out -q --plan ../plan.json --part 2/2"},
		args: words("convert ../src out -q --workers 2 --plan ../plan.json --finish"), result: "out"},
	{name: "quantise", source: "shards", args: words("convert ../src out -q --workers 2 --format int4=32"), again: words("--resume"), result: "out"},
	{name: "codes-fp8", source: "fp8", args: words("convert ../src out -q --workers 2"), again: words("--resume"), result: "out"},
	{name: "codes-int4", source: "int4", args: words("convert ../src out -q --workers 2"), again: words("--resume"), result: "out"},
	{name: "search", source: "tiny", args: words("convert ../src out -q --workers 2 --tokens ../src/tokens.safetensors --max-loss 5% --search-dir kept"), again: words("--resume"), result: "out", varies: words("kept"), alike: alikeCards, seldom: 2},
	{name: "plan", source: "one", args: words("plan ../src -o plan.json -q --workers 2 --passes round=4"), result: "plan.json", replace: true},
	{name: "report", source: "one", args: words("inspect ../src -o report.html -q --workers 2"), result: "report.html", replace: true},
	{name: "verify", source: "shards", before: []string{"convert ../src out -q --plan ../plan.json"},
		args: words("verify ../src out --report report.html -q --workers 2"), result: "report.html", replace: true},
	{name: "synth", args: words("synth ../small.json out -q --workers 2 --shard-size 30kB"), result: "out"},
	{name: "fit", source: "table", args: words("calibrate card -q --from ../power.csv"), result: "card.json", replace: true, seldom: 2},
	{name: "calibrate", args: words("calibrate card -q --components --device simulated"), alike: alikeReadings, seldom: 16},
	{name: "reproduce", args: words("reproduce points -q --device simulated --type fp8 --size 2048 --only 4a --quick"), alike: alikeReadings, seldom: 16},
}

// drawScenario returns a random scenario.
func drawScenario(rng *rand.Rand, from []scenario) scenario {
	for {
		s := pick(rng, from)
		if rng.IntN(max(1, s.seldom)) == 0 {
			return s
		}
	}
}

func words(line string) []string { return strings.Fields(line) }

// small is the configuration of the models.
const small = `{"architectures": ["LlamaForCausalLM"], "dtype": "bfloat16", "head_dim": 16, "hidden_act": "silu", "hidden_size": %d,
 "intermediate_size": %d, "max_position_embeddings": 64, "model_type": "llama", "num_attention_heads": %d, "num_hidden_layers": 1,
 "num_key_value_heads": 2, "rms_norm_eps": 1e-05, "tie_word_embeddings": true, "vocab_size": 128}
`

// sources has the options of synth for each model.
var sources = map[string]string{
	"one":    "",
	"shards": "--shard-size 30kB",
	"fp8":    "--format deepseek-fp8 --shard-size 30kB",
	"int4":   "--format int4=32 --shard-size 30kB",
	"tiny":   "",
}

// prepare makes the models and returns the initial disk of each scenario.
func prepare(ctx context.Context, program, scratch string) (map[string]tree, error) {
	starts := map[string]tree{}
	config := filepath.Join(scratch, "small.json")
	if err := os.WriteFile(config, fmt.Appendf(nil, small, 64, 128, 4), 0o666); err != nil {
		return nil, err
	}
	tiny := filepath.Join(scratch, "tiny.json")
	if err := os.WriteFile(tiny, fmt.Appendf(nil, small, 32, 32, 2), 0o666); err != nil {
		return nil, err
	}
	for name, options := range sources {
		folder := filepath.Join(scratch, name)
		from := config
		if name == "tiny" {
			from = tiny
		}
		if err := command(ctx, program, append([]string{"synth", from, folder, "-q"}, words(options)...)); err != nil {
			return nil, err
		}
		if name == "tiny" {
			if err := writeTokens(filepath.Join(folder, "tokens.safetensors")); err != nil {
				return nil, err
			}
		}
		t, err := load(folder, "src")
		if err != nil {
			return nil, err
		}
		t.add("src/tokenizer.json", strings.Repeat(`{"a": "b"}`, 3000))
		t.add("src/extra/vocab.txt", "one\ntwo\n")
		starts[name] = t
	}
	plan := filepath.Join(scratch, "plan.json")
	shards := filepath.Join(scratch, "shards")
	if err := command(ctx, program, []string{"plan", shards, "-o", plan, "-q", "--passes", "round=4"}); err != nil {
		return nil, err
	}
	made, err := os.ReadFile(plan)
	if err != nil {
		return nil, err
	}
	starts["shards"].add("plan.json", string(made))
	starts[""], starts["table"] = tree{}, tree{}
	starts[""].add("small.json", fmt.Sprintf(small, 64, 128, 4))
	starts["table"].add("power.csv", powerTable())
	for _, t := range starts {
		for _, folder := range []string{"work", "tmp", "home"} {
			t[folder] = file{folderMode, ""}
		}
	}
	return starts, nil
}

// powerTable returns a table of measurements that calibrate fits to.
func powerTable() string {
	var b strings.Builder
	b.WriteString("type,pattern,shape,role,joules,seconds\n")
	for i, pattern := range []string{"", "round(2)", "round(4)", "round(6)", "grid(2)", "grid(4)", "grid(8)", "grid(16)", "sparse(20%)", "sparse(50%)", "sparse(80%)",
		"abs", "repeat(rows=4)", "sort(by=rows)"} {
		fmt.Fprintf(&b, "bf16,%q,128x128x128,stationary,%.2f,0.004\n", strings.TrimSuffix("normal(0,0.02) | "+pattern, " | "), 2-0.02*float64(i))
	}
	return b.String()
}

func command(ctx context.Context, program string, args []string) error {
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// load reads a folder into a tree under another name.
func load(folder, as string) (tree, error) {
	t := tree{}
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(folder, path)
		t.add(as+"/"+filepath.ToSlash(rel), string(data))
		return err
	})
	return t, err
}

// writeTokens writes a few sequences for calibration and for evaluation.
func writeTokens(path string) error {
	const sequences, length = 8, 16
	shape := []int{sequences, length}
	head, _, err := weights.EncodeHeader([]weights.Info{
		{Name: "calibration", DType: weights.U8, Shape: shape}, {Name: "evaluation", DType: weights.U8, Shape: shape},
	}, nil)
	if err != nil {
		return err
	}
	data := make([]byte, 2*sequences*length)
	for i := range data {
		data[i] = byte((i*i + 7*i) % 128)
	}
	return os.WriteFile(path, append(head, data...), 0o666)
}

// named returns the scenarios of a list of names, separated by commas; all for an empty list.
func named(list string) ([]scenario, error) {
	if list == "" {
		return scenarios, nil
	}
	var out []scenario
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("%s: no scenario: choose from %s", name, strings.Join(scenarioNames(), ", "))
		}
		out = append(out, scenarios[i])
	}
	return out, nil
}

func scenarioNames() []string {
	var names []string
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	return names
}
