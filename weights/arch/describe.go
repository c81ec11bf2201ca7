package arch

import "strings"

// Kind is a kind of index, as a family file describes it.
type Kind struct {
	Name string   `json:"name"`          // "v"
	Doc  string   `json:"doc,omitempty"` // a sentence or two; may be empty
	Per  []string `json:"per,omitempty"` // loops and indices, such as "layer", "kv"; there is one instance for each of their values
	// Order, Signs and Powers say when labels may be permuted, negated and scaled by 2^k: "always", a condition such as
	// "!tied !headless", or empty for never.
	Order  string `json:"order,omitempty"`
	Signs  string `json:"signs,omitempty"`
	Powers string `json:"powers,omitempty"`
}

// InWords returns a condition in words: "unless tied or headless" for "!tied !headless". It returns "always" and the empty
// condition unchanged.
func InWords(condition string) string {
	if condition == "" || condition == always {
		return condition
	}
	var set, unset []string
	for flag := range strings.FieldsSeq(condition) {
		if not, ok := strings.CutPrefix(flag, "!"); ok {
			unset = append(unset, not)
		} else {
			set = append(set, flag)
		}
	}
	var parts []string
	if len(set) > 0 {
		parts = append(parts, "if "+strings.Join(set, " and "))
	}
	if len(unset) > 0 {
		parts = append(parts, "unless "+strings.Join(unset, " or "))
	}
	return strings.Join(parts, ", ")
}

// Kinds lists the family's kinds of index, in its file's order.
func (f *Family) Kinds() []Kind {
	var all []Kind
	for _, x := range f.indices {
		all = append(all, Kind{x.Name, x.Doc, x.Per, x.Permute, x.Sign, x.Scale})
	}
	return all
}

// Flag is a property of a model that conditions name.
type Flag struct {
	Name   string   `json:"name"`          // "tied"
	Doc    string   `json:"doc,omitempty"` // a sentence; may be empty
	Fields []string `json:"fields"`        // fields of config.json that determine the flag
}

// Flags lists the flags in the conditions of Kinds, in the file's order.
func (f *Family) Flags() []Flag {
	spoken := map[string]bool{}
	for _, k := range f.Kinds() {
		for flag := range strings.FieldsSeq(k.Order + " " + k.Signs + " " + k.Powers) {
			spoken[strings.TrimPrefix(flag, "!")] = true
		}
	}
	var all []Flag
	for _, s := range f.flags {
		if spoken[s.Name] {
			all = append(all, Flag{s.Name, s.Doc, s.Fields})
		}
	}
	return all
}

// Listed is a tensor as a family file lists it, for documentation.
type Listed struct {
	Name string   `json:"name"` // "{prefix}layers.{layer}.mlp.up_proj.weight"
	Role Role     `json:"role"`
	Axes []string `json:"axes,omitempty"` // axis expressions; none for a buffer
	When string   `json:"when,omitempty"` // a condition; empty: always
}

// Tensors lists the family's tensors, in its file's order.
func (f *Family) Tensors() []Listed {
	var all []Listed
	for _, t := range f.tensors {
		all = append(all, Listed{t.Name, t.role, t.Axes, t.When})
	}
	return all
}
