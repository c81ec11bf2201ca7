// Package page fills a command's report.html. A page takes the command's tables and remarks, and adds charts and the
// origin of every number.
package page

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/outfile"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/internal/chart"
	"github.com/lowtoggle/lowtoggle/internal/report"
)

// Keys of the app's metadata: the command line as a user can repeat it, and the program's version.
const (
	CommandKey = "command"
	VersionKey = "version"
)

// Page is the report of a command.
type Page struct{ report.Document }

// New returns an empty page.
func New(c *cli.Context, title, subtitle string) *Page {
	known := func(key, otherwise string) string {
		if text, ok := c.App.Metadata[key].(string); ok {
			return text
		}
		return otherwise
	}
	return &Page{report.Document{Title: title, Subtitle: subtitle, Program: c.App.Name, Version: known(VersionKey, c.App.Version),
		Command: known(CommandKey, ""), Date: time.Now().Format("2006-01-02 15:04 MST")}}
}

// Figure adds a figure above the sections.
func (p *Page) Figure(label, value, interval string, how report.How) {
	p.Main = append(p.Main, report.Figure{Label: label, Value: value, Range: interval, How: how})
}

// Origin adds a statement of how numbers were obtained. what names the numbers, from their source. An equal statement
// is added once.
func (p *Page) Origin(what string, how report.How, from string) {
	if o := (report.Origin{What: what, How: how, From: from}); !slices.Contains(p.Origins, o) {
		p.Origins = append(p.Origins, o)
	}
}

// Section adds a section. An empty section is left out of the page.
func (p *Page) Section(title string) *Section {
	s := &report.Section{Title: title}
	p.Sections = append(p.Sections, s)
	return &Section{s}
}

// Write writes the page to a file and prints the file's path.
func (p *Page) Write(c *cli.Context, path string) error {
	var b bytes.Buffer
	if err := p.Document.Write(&b); err != nil {
		return err
	}
	return outfile.WriteReport(c, path, b.Bytes())
}

// Section is a section of a page. It is a [term.Recorder], so functions that print a report can fill it.
type Section struct{ section *report.Section }

var _ term.Recorder = (*Section)(nil)

// Write adds lines of text as paragraphs. An indented line belongs to the line before it. Empty lines are left out.
func (s *Section) Write(text []byte) (int, error) {
	var paragraph []string
	flush := func() {
		if joined := strings.Join(paragraph, " "); joined != "" {
			s.section.Add(report.Block{Text: joined})
		}
		paragraph = nil
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "  ") {
			flush()
		}
		if line = strings.TrimSpace(line); line != "" {
			paragraph = append(paragraph, line)
		}
	}
	flush()
	return len(text), nil
}

// Table adds a table. A table without rows is left out.
func (s *Section) Table(t *term.Table) {
	if len(t.Rows) > 0 {
		s.section.Add(report.Block{Table: &report.Table{Head: t.Head, Rows: t.Rows}})
	}
}

// alerts are the first words of remarks that the page highlights.
var alerts = []string{"INVALID", "NOT DROP-IN", "NOT OK", "problem", "warning", "not done"}

// Remark adds a remark.
func (s *Section) Remark(word, text string) {
	s.section.Add(report.Block{Remark: &report.Remark{Word: word, Text: text, Alert: slices.Contains(alerts, word)}})
}

// Picture adds a chart with a caption.
func (s *Section) Picture(c chart.Chart, caption string) {
	s.section.Add(report.Block{Picture: &report.Picture{Chart: c, Caption: caption}})
}

// Folded adds a part that is hidden until the reader opens its title.
func (s *Section) Folded(title string) *Section {
	inner := &report.Section{Title: title}
	s.section.Add(report.Block{Folded: inner})
	return &Section{inner}
}
