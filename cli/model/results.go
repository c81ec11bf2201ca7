package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// quality matches the name of a number that a changed weight may change.
var quality = regexp.MustCompile(`(?i)(^|_)(loss|ppl|perplexity|accuracy|acc|eval)(_|$)`)

// configFiles are names of JSON files that describe a model, not results. A config may have a field such as
// router_aux_loss_coef.
var configFiles = []string{"*config*.json", "tokenizer*.json", "*.index.json", "lowtoggle.json"}

// mostResults is the largest JSON file, in bytes, that is searched for results.
const mostResults = 1 << 20

// copiedTokens describes a copied token file, whose texts are then part of the output; empty if there is none.
func copiedTokens(m *weights.Model, leftOut []weights.Leftover) string {
	name := filepath.Base(tokens.Path(""))
	if m.Single || !slices.Contains(m.Others, name) || slices.ContainsFunc(leftOut, func(l weights.Leftover) bool { return l.Covers(name) }) {
		return ""
	}
	return name + ": copied, so the output contains the tokens for calibration and evaluation; to keep these tokens out, move the file out of the source before you convert"
}

// resultsOf describes the copied files that hold measured results of the original model, such as its loss; empty if
// there are none.
func resultsOf(m *weights.Model, leftOut []weights.Leftover) string {
	var files []string
	for _, file := range m.Others {
		config := slices.ContainsFunc(configFiles, func(pattern string) bool { ok, _ := path.Match(pattern, path.Base(file)); return ok })
		left := slices.ContainsFunc(leftOut, func(l weights.Leftover) bool { return l.Covers(file) })
		if m.Single || config || left || path.Ext(file) != ".json" {
			continue
		}
		js, err := m.ReadFile(file, mostResults)
		var fields map[string]any
		if err != nil || json.Unmarshal(js, &fields) != nil { // a large or other file
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if _, number := fields[name].(float64); number && quality.MatchString(name) {
				files = append(files, fmt.Sprintf("%s (%s)", file, name))
				break
			}
		}
	}
	if len(files) == 0 {
		return ""
	}
	return strings.Join(files, ", ") + ": copied unchanged, with results of the original model, not of this conversion"
}
