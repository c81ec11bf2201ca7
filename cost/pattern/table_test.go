package pattern

import (
	"slices"
	"testing"
)

// TestTable: names are unique, everything is documented, defaults are valid, sources come first, and every example is
// a pattern with its operation.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	step := false
	for _, o := range operations {
		if o.Name == "" || seen[o.Name] || o.Doc == "" {
			t.Errorf("%q: the name is taken or the documentation missing", o.Name)
		}
		seen[o.Name] = true
		if o.Source && step {
			t.Errorf("%s: a source behind a step", o.Name)
		}
		step = step || !o.Source
		if (o.draw == nil) == (o.make == nil) || o.draw != nil && !o.Source {
			t.Errorf("%s: must be made or, as a source, drawn", o.Name)
		}
		if p, err := Parse(o.Example); err != nil {
			t.Errorf("%s: the example: %v", o.Name, err)
		} else if !slices.ContainsFunc(p.calls(), func(c call) bool { return c.op == o }) {
			t.Errorf("%s: the example %s is another's", o.Name, o.Example)
		}
		for _, p := range o.Parameters {
			if p.Name == "" || p.Doc == "" || p.Kind == Word && len(p.Words) == 0 || p.Min > p.Max {
				t.Errorf("%s: parameter %q is not complete", o.Name, p.Name)
			}
			if p.Default != "" {
				if v, err := (&parser{text: p.Default}).value(&p); err != nil || spellValue(v) != p.Default {
					t.Errorf("%s: the default of %s is %v, %v", o.Name, p.Name, v, err)
				}
			}
			if o.anyOf && (p.Default == "" || !p.Named) {
				t.Errorf("%s: %s must have a default and be named, as required by anyOf", o.Name, p.Name)
			}
		}
	}
}
