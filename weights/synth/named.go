package synth

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed configs/*.json
var configs embed.FS

// Names lists the configurations that [Config] knows, sorted.
func Names() []string {
	entries, err := configs.ReadDir("configs")
	if err != nil {
		panic(err) // the name is a constant
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".json"))
	}
	return names
}

// Config returns a config.json by name:
//
//   - llama-2gb: 1.03 billion weights in BF16, in a Llama's usual proportions, for benchmarks;
//   - deepseek-v3: DeepSeek-V3's published size, 671 billion weights, without its layer for multi-token prediction; see
//     [Options.Sparse];
//   - gpt2-small: GPT-2's smallest published size in BF16, 0.25 GB;
//   - FAMILY-tiny for every family of package arch, and FAMILY-WHAT-tiny for some of its other forms:
//     about 100 KB, for tests, with the fields of published models and head counts that are no power
//     of two.
func Config(name string) ([]byte, error) {
	config, err := configs.ReadFile("configs/" + name + ".json")
	if err != nil {
		return nil, fmt.Errorf("no configuration is named %q; there are %s", name, strings.Join(Names(), ", "))
	}
	return config, nil
}
