package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// columns are the columns of the overview: each has a title and the last words of its indices' names. The last column has all
// other indices.
var columns = []struct {
	title string
	words []string
}{
	{"residual stream", []string{"residual"}},
	{"norms", []string{"norm"}},
	{"FFN", []string{"ffn"}},
	{"heads", []string{"kv", "group", "head"}},
	{"q and k", []string{"qk", "pair", "rest", "nope"}},
	{"v", []string{"v"}},
	{"others", nil},
}

// column returns the number of an index's column.
func column(index string) int {
	word := index[strings.LastIndexByte(index, '_')+1:]
	for i, c := range columns {
		if slices.Contains(c.words, word) {
			return i
		}
	}
	return len(columns) - 1
}

// TestFamilyReference checks that docs/families.md agrees with the catalogue.
func TestFamilyReference(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("# What may be done to which architecture?\n\nGenerated from `weights/arch/families` by `go test . -update`.\n\n" +
		"This page lists, for each architecture, the changes of the weights that keep the function of the model. An *index* is a\n" +
		"dimension that several tensors share, such as the neurons of an FFN. Three changes are possible along an index: another\n" +
		"**order** (o), other **signs** (s), and factors that are **powers of two** (2). Brackets mean that only some models of the\n" +
		"architecture allow the change. A dash means that no change is possible. An empty cell means that the architecture has no\n" +
		"index of this kind. If a column covers several indices, it shows a change that is possible along at least one of them.\n\n" +
		"A function *commutes* with a change if the changed inputs give the outputs with the same change. For example, ReLU commutes with\n" +
		"positive factors, and GELU does not.\n\n" +
		"[own-family.md](own-family.md) says how the catalogue is tested and how to add an architecture of your own.\n\n")
	overview(&b)
	for _, f := range arch.Families() {
		describe(&b, f)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); strings.Count(line, "|") > 3 && n > 100 {
			t.Errorf("a table of %d columns, more than 100: shorten the conditions\n%s", n, line)
		}
	}
	goldenfile.Same(t, "docs/families.md", b.Bytes())
}

// overview prints a row for every family.
func overview(b *bytes.Buffer) {
	b.WriteString("| family |")
	for _, c := range columns {
		fmt.Fprintf(b, " %s |", c.title)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, f := range arch.Families() {
		fmt.Fprintf(b, "| [%s](#%[1]s) |", f.Name)
		for i := range columns {
			fmt.Fprintf(b, " %s |", letters(f, i))
		}
		b.WriteString("\n")
	}
}

// letters returns the allowed changes of a column's indices. It returns "" if there are no indices.
func letters(f *arch.Family, at int) string {
	var order, signs, powers []string // conditions
	for _, k := range f.Kinds() {
		if column(k.Name) == at {
			order, signs, powers = append(order, k.Order), append(signs, k.Signs), append(powers, k.Powers)
		}
	}
	s := ""
	for _, l := range []struct {
		letter     string
		conditions []string
	}{{"o", order}, {"s", signs}, {"2", powers}} {
		switch {
		case slices.Contains(l.conditions, "always"):
			s += " " + l.letter
		case strings.Join(l.conditions, "") != "":
			s += " (" + l.letter + ")"
		}
	}
	switch {
	case order == nil:
		return ""
	case s == "":
		return "–"
	}
	return s[1:]
}

// describe prints a family's section.
func describe(b *bytes.Buffer, f *arch.Family) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\nmodel_type: %s\n\n", f.Name, f.Doc, code(f.ModelTypes))
	b.WriteString("| index | of every | order | signs | powers of two |\n|---|---|---|---|---|\n")
	for _, k := range f.Kinds() {
		of := strings.Join(k.Per, ", ")
		if of == "" {
			of = "model"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", k.Name, of, when(k.Order), when(k.Signs), when(k.Powers))
	}
	b.WriteString("\n| index | meaning |\n|---|---|\n")
	for _, k := range f.Kinds() {
		if k.Doc != "" {
			fmt.Fprintf(b, "| `%s` | %s |\n", k.Name, k.Doc)
		}
	}
	conditions(b, f)
	if len(f.Absent) > 0 {
		b.WriteString("\nlowtoggle does not make these changes:\n\n")
	}
	for _, a := range f.Absent {
		fmt.Fprintf(b, "- **%s.** %s\n", strings.ToUpper(a.What[:1])+a.What[1:], a.Why)
	}
}

// conditions explains the flags in a family's table.
func conditions(b *bytes.Buffer, f *arch.Family) {
	title := "\nThe first table of this section uses these conditions:\n\n"
	for _, flag := range f.Flags() {
		fmt.Fprintf(b, "%s- *%s* is read from %s of config.json.", title, flag.Name, code(flag.Fields))
		title = ""
		if flag.Doc != "" {
			b.WriteString(" " + flag.Doc)
		}
		b.WriteString("\n")
	}
}

// when returns a condition in words for a table.
func when(condition string) string {
	switch condition {
	case "":
		return "–"
	case "always":
		return "yes"
	}
	return arch.InWords(condition)
}

func code(words []string) string { return "`" + strings.Join(words, "`, `") + "`" }
