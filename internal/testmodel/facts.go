package testmodel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

// EachNumber calls try with facts in which one number differs, for every number outside lists. It returns the number
// of calls. what is the number's path in the JSON form, with the new value.
func EachNumber[F any](t TB, facts F, change func(name string, v float64) float64, try func(what string, changed F)) (numbers int) {
	t.Helper()
	tree := fields(t, facts)
	var visit func(path string, node map[string]any)
	visit = func(path string, node map[string]any) {
		for name, v := range node {
			switch v := v.(type) {
			case map[string]any:
				visit(path+"."+name, v)
			case float64:
				numbers++
				node[name] = change(name, v)
				text, err := json.Marshal(tree)
				OK(t, err)
				var changed F
				OK(t, json.Unmarshal(text, &changed))
				try(fmt.Sprintf("%s.%s = %v", path, name, node[name]), changed)
				node[name] = v
			}
		}
	}
	visit("facts", tree)
	return numbers
}

// WriteChanged writes v as JSON after change has edited its fields.
func WriteChanged(t TB, file string, v any, change func(fields map[string]any)) {
	t.Helper()
	tree := fields(t, v)
	change(tree)
	text, err := json.Marshal(tree)
	OK(t, err)
	OK(t, os.WriteFile(file, text, 0o666))
}

// WriteReplaced writes text with the first from replaced by to. If text lacks from, the test fails.
func WriteReplaced(t TB, file string, text []byte, from, to string) {
	t.Helper()
	changed := bytes.Replace(text, []byte(from), []byte(to), 1)
	if bytes.Equal(changed, text) {
		t.Fatalf("there is no %s to replace", from)
	}
	OK(t, os.WriteFile(file, changed, 0o666))
}

func fields(t TB, v any) (tree map[string]any) {
	t.Helper()
	text, err := json.Marshal(v)
	OK(t, err)
	OK(t, json.Unmarshal(text, &tree))
	return tree
}
