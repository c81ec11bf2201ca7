package arch

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Keep returns a layout in which the named tensors do not change: their indices are blocked, and Doubt returns the reason. In
// messages, the text why follows the tensor's name, such as "is left alone (--ignore)". Names without a claim are ignored.
func (l *Layout) Keep(tensors []string, why string) *Layout {
	if l == nil || len(tensors) == 0 {
		return l
	}
	kept := l.clone()
	kept.kept = maps.Clone(l.kept)
	if kept.kept == nil {
		kept.kept = map[string]string{}
	}
	stays := map[string]bool{}
	for _, name := range tensors {
		stays[name] = true
		kept.kept[name] = fmt.Sprintf("tensor %q %s", name, why)
	}
	for _, x := range kept.Indices {
		if i := slices.IndexFunc(x.Uses, func(u Use) bool { return stays[u.Tensor] }); i >= 0 {
			x.block("tensor %q %s", x.Uses[i].Tensor, why)
		}
	}
	return kept
}

// IsRouter reports whether a tensor or module belongs to a router: a linear layer whose outputs choose or weigh experts.
func IsRouter(name string) bool {
	for _, suffix := range []string{".weight", ".bias", ".e_score_correction_bias"} {
		name = strings.TrimSuffix(name, suffix)
	}
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "gate", "router", "shared_expert_gate":
		return true
	}
	return false
}

// CustomCode returns the field of a config.json's auto_map that names code in the model's folder, such as
// "AutoModelForCausalLM"; empty if there is none. A tokeniser's code does not count.
func CustomCode(configJSON []byte) string {
	var config struct {
		AutoMap map[string]any `json:"auto_map"`
	}
	if json.Unmarshal(configJSON, &config) != nil {
		return ""
	}
	for _, field := range slices.Sorted(maps.Keys(config.AutoMap)) {
		if strings.HasPrefix(field, "AutoModel") || field == "AutoConfig" {
			return field
		}
	}
	return ""
}
