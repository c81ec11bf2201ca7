package report

import (
	"cmp"
	_ "embed" // embeds the page's template and style
	"fmt"
	"html/template"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/internal/printable"
)

var (
	//go:embed page.html
	pageText string
	//go:embed style.css
	style string

	page = template.Must(template.New("page").Funcs(template.FuncMap{
		"show": show, "lines": lines, "group": group, "last": isTotal, "id": id, "css": func() template.CSS { return template.CSS(style) },
	}).Parse(pageText))
)

// Write writes the document as HTML. The same document gives the same bytes.
func (d *Document) Write(w io.Writer) error {
	if err := page.Execute(w, d); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// SVG draws the picture's chart. Without a width of its own, the chart has the width for a phone.
func (p *Picture) SVG() template.HTML {
	c := p.Chart
	c.Width = cmp.Or(c.Width, Narrow)
	return template.HTML(strings.TrimSpace(string(c.SVG()))) // package chart escapes all text
}

// torn matches spaces at which a line must not break: within a number, and before a per cent sign.
var torn = regexp.MustCompile(`(\d) (\d{3}|%)`)

// show makes all characters of a text visible, and prevents line breaks within numbers.
func show(s string) string {
	s = printable.Quote(s)
	for range 2 { // one round finds no overlapping matches
		s = torn.ReplaceAllString(s, "$1\u00a0$2")
	}
	return s
}

// lines splits a heading into lines.
func lines(s string) []string { return strings.Split(s, "\n") }

// isTotal reports whether a row is the last row and a total.
func isTotal(rows [][]string, i int) bool {
	return i == len(rows)-1 && i > 0 && len(rows[i]) > 0 && rows[i][0] == "total"
}

// run is a sequence of blocks of one kind: remarks form one list, and pictures stand side by side.
type run struct {
	Remarks  []*Remark
	Pictures []*Picture
	Block    *Block
}

// group groups blocks into runs.
func group(blocks []Block) (list []run) {
	for i := range blocks {
		b, last := &blocks[i], len(list)-1
		switch {
		case b.Remark != nil && last >= 0 && list[last].Remarks != nil:
			list[last].Remarks = append(list[last].Remarks, b.Remark)
		case b.Remark != nil:
			list = append(list, run{Remarks: []*Remark{b.Remark}})
		case b.Picture != nil && last >= 0 && list[last].Pictures != nil:
			list[last].Pictures = append(list[last].Pictures, b.Picture)
		case b.Picture != nil:
			list = append(list, run{Pictures: []*Picture{b.Picture}})
		default:
			list = append(list, run{Block: b})
		}
	}
	return list
}

// id returns the anchor of section i.
func id(i int) string { return fmt.Sprintf("section-%d", i+1) }

// HasMain reports whether there are figures above the sections.
func (d *Document) HasMain() bool { return len(d.Main) > 0 }

// Shown lists the sections that have any content.
func (d *Document) Shown() []*Section {
	return slices.DeleteFunc(slices.Clone(d.Sections), func(s *Section) bool { return len(s.Blocks) == 0 })
}
