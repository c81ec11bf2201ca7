// Package card writes the model card of a converted folder: README.md with front matter for model hubs, and a section
// about the changes. The text of the source's card stays.
package card

import (
	"bytes"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Name is the file name of a model card.
const Name = "README.md"

// Comments that begin and end the section written by lowtoggle.
const (
	begin = "<!-- lowtoggle: begin -->"
	end   = "<!-- lowtoggle: end -->"
)

// Fields of the front matter written by lowtoggle.
const (
	baseField     = "base_model"
	relationField = "base_model_relation"
)

// Base names the model from which a result was made, in the terms of the Hugging Face Hub.
type Base struct {
	Model string
	// Relation is "quantized", "finetune", "adapter" or "merge". If it is empty, the card has no relation, and the
	// Hub infers one.
	Relation string
}

// Write returns a card with the base in its front matter and the section in its text. source is the source's card;
// nil if there is none. All other bytes of the card stay. An earlier section and earlier fields are replaced. If the
// front matter is not a list of fields in valid YAML, the front matter stays and fields is false.
func Write(source []byte, base Base, section string) (card []byte, fields bool) {
	newline := newlineOf(source)
	d := split(source)
	front, fields := d.withBase(base, newline)
	text := begin + "\n" + strings.TrimSpace(section) + "\n" + end + "\n"
	text = strings.ReplaceAll(text, "\n", newline)
	var b bytes.Buffer
	b.Write(front)
	body, at := withoutSections(d.body)
	if at < 0 { // append the section after an empty line
		b.Write(body)
		if len(body) > 0 && !bytes.HasSuffix(body, []byte("\n")) {
			b.WriteString(newline)
		}
		if b.Len() > 0 {
			b.WriteString(newline)
		}
		b.WriteString(text)
	} else {
		b.Write(body[:at])
		b.WriteString(text)
		b.Write(body[at:])
	}
	return b.Bytes(), fields
}

// Replace returns a card whose section has text, and nothing else, below a heading of the third level. All other bytes
// of the card stay. ok is false if the card has no section, or the section does not have the heading exactly once.
func Replace(card []byte, heading, text string) (replaced []byte, ok bool) {
	d := split(card)
	from, to := section(d.body, 0)
	if from < 0 {
		return card, false
	}
	from += len(card) - len(d.body)
	to += len(card) - len(d.body)
	newline := newlineOf(card[from:to])
	mark := []byte("\n### " + heading + newline)
	if bytes.Count(card[from:to], mark) != 1 {
		return card, false
	}
	from += bytes.Index(card[from:to], mark) + len(mark)
	text = "\n" + strings.TrimSpace(text) + "\n"
	to -= len(end)
	if n := bytes.Index(card[from:to], []byte("\n### ")); n >= 0 {
		to = from + n + len("\n")
		text += "\n"
	}
	return slices.Concat(card[:from], []byte(strings.ReplaceAll(text, "\n", newline)), card[to:]), true
}

// newlineOf returns the first line break of a text.
func newlineOf(text []byte) string {
	if i := bytes.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// Kept returns the bytes of a card that lowtoggle does not write. It removes lowtoggle's section and fields, and
// front matter that has no other fields. The result is equal for a card and for the result of [Write].
func Kept(card []byte) []byte {
	d := split(card)
	front := d.front
	if list, ok := d.fields(); ok {
		lines := slices.Clone(d.lines)
		for _, f := range list {
			if f.name == baseField || f.name == relationField {
				clear(lines[f.from:f.to])
			}
		}
		front = bytes.Join(lines, nil)
		if len(bytes.TrimSpace(front)) > 0 {
			front = slices.Concat(d.open, front, d.close)
		} else {
			front = nil
		}
	}
	body, _ := withoutSections(d.body)
	return bytes.TrimRight(slices.Concat(front, bytes.Trim(body, "\r\n")), "\r\n")
}

// BaseOf returns the base model of a card; empty if the card names none or several.
func BaseOf(card []byte) string {
	d := split(card)
	var front struct {
		Base yaml.Node `yaml:"base_model"`
	}
	if yaml.Unmarshal(bytes.Join(d.lines, nil), &front) != nil {
		return ""
	}
	n := &front.Base
	if n.Kind == yaml.SequenceNode && len(n.Content) == 1 {
		n = n.Content[0]
	}
	if n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// document is a card in parts.
type document struct {
	front       []byte   // from the first "---" to the second, with both lines; empty if there is none
	open, close []byte   // the lines "---"
	lines       [][]byte // lines between open and close
	body        []byte
}

func split(card []byte) (d document) {
	d.body = card
	lines := bytes.SplitAfter(card, []byte("\n"))
	rule := func(line []byte) bool { return string(bytes.TrimRight(line, " \t\r\n")) == "---" }
	if !rule(bytes.TrimPrefix(lines[0], []byte("\ufeff"))) {
		return d
	}
	n := slices.IndexFunc(lines[1:], rule) + 1
	if n == 0 {
		return d
	}
	d.open, d.lines, d.close, d.body = lines[0], lines[1:n], lines[n], bytes.Join(lines[n+1:], nil)
	d.front = bytes.Join(lines[:n+1], nil)
	return d
}

// entry is a field of the front matter, with its lines.
type entry struct {
	name     string
	from, to int
}

// fields lists the fields of the front matter. ok is false if the front matter is not a list of fields in valid YAML.
func (d *document) fields() (list []entry, ok bool) {
	text := bytes.Join(d.lines, nil)
	if hasOtherBreaks(text) { // YAML's line numbers are then not those of d.lines
		return nil, false
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, false
	}
	if doc.Kind == 0 { // the front matter is empty
		return nil, true
	}
	fields := doc.Content[0]
	if fields.Kind != yaml.MappingNode || fields.Style&yaml.FlowStyle != 0 {
		return nil, false
	}
	for i := 0; i < len(fields.Content); i += 2 {
		key := fields.Content[i]
		if key.Column != 1 {
			return nil, false
		}
		to := len(d.lines)
		if i+2 < len(fields.Content) {
			to = fields.Content[i+2].Line - 1
		}
		from := key.Line - 1
		for to > from+1 && besideFields(d.lines[to-1]) {
			to--
		}
		list = append(list, entry{key.Value, from, to})
	}
	return list, true
}

// hasOtherBreaks reports whether a text has line breaks of YAML other than "\n" and "\r\n".
func hasOtherBreaks(text []byte) bool {
	return bytes.ContainsAny(bytes.ReplaceAll(text, []byte("\r\n"), nil), "\r\u0085\u2028\u2029")
}

// besideFields reports whether a line is empty or a comment and so belongs to no field.
func besideFields(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) == 0 || line[0] == '#'
}

// withBase returns the front matter with the base in it. ok is false if the front matter does not change.
func (d *document) withBase(base Base, newline string) (front []byte, ok bool) {
	values := []struct{ name, value string }{{baseField, base.Model}, {relationField, base.Relation}}
	list, ok := d.fields()
	if !ok {
		return d.front, false
	}
	lines := slices.Clone(d.lines)
	var missing bytes.Buffer
	for _, v := range values {
		text := []byte(fieldLine(v.name, v.value, newline))
		found := false
		for _, f := range list {
			if f.name != v.name {
				continue
			}
			clear(lines[f.from:f.to])
			if !found {
				lines[f.from] = text
			}
			found = true
		}
		if !found {
			missing.Write(text)
		}
	}
	front = bytes.Join(lines, nil)
	if n := len(front); n > 0 && front[n-1] != '\n' {
		missing = *bytes.NewBufferString(newline + missing.String())
	}
	if len(d.front) == 0 {
		rule := []byte("---" + newline)
		front = slices.Concat(rule, front, missing.Bytes(), rule)
		if len(bytes.TrimSpace(d.body)) > 0 {
			front = append(front, newline...)
		}
		return front, true
	}
	front = slices.Concat(d.open, front, missing.Bytes(), d.close)
	if after := split(front); !after.has(base) {
		return d.front, false
	}
	return front, true
}

// has reports whether the front matter names this base exactly once.
func (d *document) has(base Base) bool {
	list, ok := d.fields()
	want := map[string]int{baseField: 1, relationField: min(1, len(base.Relation))}
	for _, f := range list {
		want[f.name]--
	}
	return ok && want[baseField] == 0 && want[relationField] == 0
}

// fieldLine returns a line of front matter. Without a value, it returns an empty string.
func fieldLine(name, value, newline string) string {
	if value == "" {
		return ""
	}
	text, err := yaml.Marshal(map[string]string{name: value})
	if err != nil {
		return ""
	}
	return strings.ReplaceAll(string(text), "\n", newline)
}

// section returns the bounds of the first of lowtoggle's sections in body[from:], with both comments; -1 if there is
// none. A comment without its partner is ordinary text.
func section(body []byte, from int) (begins, ends int) {
	for {
		n := bytes.Index(body[from:], []byte(end))
		if n < 0 {
			return -1, -1
		}
		if i := bytes.LastIndex(body[from:from+n], []byte(begin)); i >= 0 {
			return from + i, from + n + len(end)
		}
		from += n + len(end)
	}
}

// withoutSections returns a text without lowtoggle's sections, and the offset of the first one; -1 if there is none.
// A section includes the line break of its last line.
func withoutSections(body []byte) (rest []byte, at int) {
	at, rest = -1, body
	for from := 0; ; {
		i, n := section(rest, from)
		if i < 0 {
			return rest, at
		}
		after := bytes.TrimPrefix(bytes.TrimPrefix(rest[n:], []byte("\r")), []byte("\n"))
		if at < 0 {
			at = i
		}
		from, rest = i, slices.Concat(rest[:i], after)
	}
}
