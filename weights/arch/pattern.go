package arch

import (
	"fmt"
	"strconv"
	"strings"
)

// pattern is a tensor's name with variables: "{prefix}layers.{layer}.mlp.up_proj.weight".
type pattern struct {
	text  string
	start string // "prefix", "root", or empty: what stands in front
	parts []part // between the dots, after the start
	vars  []int  // the loops' slots, in order
}

// part is a literal, a loop's variable where slot ≥ 0, or one of the prefixes' own words.
type part struct {
	literal string
	slot    int
	word    string
}

// under is what the part says under a prefix, where it is no variable.
func (p part) under(prefix prefix) string {
	if p.word != "" {
		return prefix[p.word]
	}
	return p.literal
}

// parsePattern reads a pattern; loops gives the slot of each loop's name, words any of the
// family's prefixes.
func parsePattern(s string, loops map[string]int, words prefix) (pattern, error) {
	p := pattern{text: s}
	rest := s
	for _, start := range []string{"prefix", "root"} {
		if after, ok := strings.CutPrefix(s, "{"+start+"}"); ok {
			p.start, rest = start, after
		}
	}
	if rest == "" {
		return p, fmt.Errorf("name %q: empty", s)
	}
	for word := range strings.SplitSeq(rest, ".") {
		name, isVar := strings.CutPrefix(word, "{")
		name, closed := strings.CutSuffix(name, "}")
		if isVar != closed || strings.ContainsAny(name, "{}") {
			return p, fmt.Errorf("name %q: a variable stands alone between dots, as in \"h.{layer}.bias\"", s)
		}
		if !isVar {
			p.parts = append(p.parts, part{literal: word, slot: -1})
			continue
		}
		if words.own(name) {
			p.parts = append(p.parts, part{word: name, slot: -1})
			continue
		}
		slot, ok := loops[name]
		if !ok {
			return p, fmt.Errorf("name %q: no loop is called %q", s, name)
		}
		if p.has(slot) {
			return p, fmt.Errorf("name %q: {%s} stands there twice", s, name)
		}
		p.parts, p.vars = append(p.parts, part{slot: slot}), append(p.vars, slot)
	}
	return p, nil
}

// has reports whether the loop at slot is one of the variables.
func (p pattern) has(slot int) bool {
	for _, v := range p.vars {
		if v == slot {
			return true
		}
	}
	return false
}

// covers reports whether q's variables are all among p's.
func (p pattern) covers(q pattern) bool {
	for _, v := range q.vars {
		if !p.has(v) {
			return false
		}
	}
	return true
}

// name fills in the variables; coord holds their values by slot.
func (p pattern) name(prefix prefix, coord []int) string {
	var b strings.Builder
	b.WriteString(prefix[p.start])
	for i, part := range p.parts {
		if i > 0 {
			b.WriteByte('.')
		}
		if part.slot < 0 {
			b.WriteString(part.under(prefix))
		} else {
			b.WriteString(strconv.Itoa(coord[part.slot]))
		}
	}
	return b.String()
}

// match reads the variables' values out of a name, into coord by slot.
func (p pattern) match(prefix prefix, name string, coord []int) bool {
	name, ok := strings.CutPrefix(name, prefix[p.start])
	if !ok {
		return false
	}
	words := strings.Split(name, ".")
	if len(words) != len(p.parts) {
		return false
	}
	for i, part := range p.parts {
		if part.slot < 0 {
			if words[i] != part.under(prefix) {
				return false
			}
			continue
		}
		n, err := strconv.Atoi(words[i])
		if err != nil || strconv.Itoa(n) != words[i] || n < 0 {
			return false
		}
		coord[part.slot] = n
	}
	return true
}

// words are a name's parts, with variable in place of every variable.
func (p pattern) words(prefix prefix) []string {
	words := make([]string, 0, len(p.parts))
	for _, part := range p.parts {
		word := part.under(prefix)
		if part.slot >= 0 {
			word = variable
		}
		words = append(words, word)
	}
	return strings.Split(prefix[p.start]+strings.Join(words, "."), ".")
}

// variable marks what may be any number; no name can contain it.
const variable = "{}"

// overlap reports whether a name can be made of the words of both. They have the same outline.
func overlap(a, b []string) bool {
	for i := range a {
		if a[i] != b[i] && a[i] != variable && b[i] != variable {
			return false
		}
	}
	return true
}

// kind is the name of the layer's type: without prefix, all that stands up to the first
// variable, other variables and the last ".weight". "mlp.up_proj", "mlp.up_proj.bias", "norm".
// The family's first prefix spells it.
func (p pattern) kind(first prefix) string {
	var words []string
	for _, part := range p.parts {
		switch {
		case part.slot < 0:
			words = append(words, part.under(first))
		case part.slot == p.vars[0]:
			words = nil
		}
	}
	if n := len(words); n > 1 && words[n-1] == "weight" {
		words = words[:n-1]
	}
	return strings.Join(words, ".")
}
