package arch

import (
	"fmt"
	"strconv"
	"strings"
)

// pattern is a tensor's name with variables: "{prefix}layers.{layer}.mlp.up_proj.weight".
type pattern struct {
	text  string
	start string // "prefix", "root" or empty: the first variable
	parts []part // words between dots, after the start
	vars  []int  // the loops' slots, in order
}

// part is one word of a pattern: a literal, a loop's variable (slot ≥ 0), or one of the family's own words.
type part struct {
	literal string
	slot    int
	word    string
}

// under returns the text of a part that is not a loop's variable, under a prefix.
func (p part) under(prefix prefix) string {
	if p.word != "" {
		return prefix[p.word]
	}
	return p.literal
}

// parsePattern reads a pattern. loops has the slot of each loop by name. words is one of the family's prefixes; all have the
// same words.
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
			return p, fmt.Errorf("name %q: a variable must stand alone between dots, as in \"h.{layer}.bias\"", s)
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
			return p, fmt.Errorf("name %q: loops has no entry named %q", s, name)
		}
		if p.has(slot) {
			return p, fmt.Errorf("name %q: contains {%s} twice", s, name)
		}
		p.parts, p.vars = append(p.parts, part{slot: slot}), append(p.vars, slot)
	}
	return p, nil
}

// has reports whether the pattern has the variable of the loop at slot.
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

// name returns the tensor's name with variables filled in; coord holds their values by slot.
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

// match reports whether a name fits the pattern, and stores the variables' values in coord by slot.
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

// words returns the parts of a name, with the constant variable in place of every loop's variable.
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

// variable stands for any number. No name can contain this text.
const variable = "{}"

// overlap reports whether some name fits both lists of words, which have the same outline.
func overlap(a, b []string) bool {
	for i := range a {
		if a[i] != b[i] && a[i] != variable && b[i] != variable {
			return false
		}
	}
	return true
}

// kind returns the name of the layer's type, such as "mlp.up_proj", "mlp.up_proj.bias" or "norm". This is the tensor's name
// under the family's first prefix, without prefix, variables, the parts before the first variable, and a ".weight" at the
// end.
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
