package report

import (
	"cmp"
	_ "embed" // of the page's template and style
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

// SVG draws the picture's chart at the width of a phone, unless it has a width of its own.
func (p *Picture) SVG() template.HTML {
	c := p.Chart
	c.Width = cmp.Or(c.Width, Narrow)
	return template.HTML(strings.TrimSpace(string(c.SVG()))) // package chart escapes all text
}

// torn are spaces that a line must not end with: within a number, and before its per cent.
var torn = regexp.MustCompile(`(\d) (\d{3}|%)`)

// show makes all characters of a text visible, and keeps its numbers whole.
func show(s string) string {
	s = printable.Quote(s)
	for range 2 { // matches do not overlap
		s = torn.ReplaceAllString(s, "$1\u00a0$2")
	}
	return s
}

// lines splits a heading.
func lines(s string) []string { return strings.Split(s, "\n") }

// isTotal reports whether a row is the last one and a total.
func isTotal(rows [][]string, i int) bool {
	return i == len(rows)-1 && i > 0 && len(rows[i]) > 0 && rows[i][0] == "total"
}

// run is blocks of one sort that follow each other: remarks are one list, and pictures stand beside each other.
type run struct {
	Remarks  []*Remark
	Pictures []*Picture
	Block    *Block
}

// group gathers runs.
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

// id is the anchor of the section of that number.
func id(i int) string { return fmt.Sprintf("section-%d", i+1) }

// HasMain reports whether there are figures above the sections.
func (d *Document) HasMain() bool { return len(d.Main) > 0 }

// Shown lists the sections that have any content.
func (d *Document) Shown() []*Section {
	return slices.DeleteFunc(slices.Clone(d.Sections), func(s *Section) bool { return len(s.Blocks) == 0 })
}
