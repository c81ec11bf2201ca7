// Package page fills a command's report.html. A page takes what the command prints, as tables and remarks, and adds charts and
// the origin of every number.
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

// Keys of the app's metadata: the command line as its user could repeat it, and the program's version.
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

// Figure adds a figure to those above the sections.
func (p *Page) Figure(label, value, interval string, how report.How) {
	p.Main = append(p.Main, report.Figure{Label: label, Value: value, Range: interval, How: how})
}

// Origin says where numbers come from. The same words twice are one origin.
func (p *Page) Origin(what string, how report.How, from string) {
	if o := (report.Origin{What: what, How: how, From: from}); !slices.Contains(p.Origins, o) {
		p.Origins = append(p.Origins, o)
	}
}

// Section adds a section. It is left out of the page as long as it is empty.
func (p *Page) Section(title string) *Section {
	s := &report.Section{Title: title}
	p.Sections = append(p.Sections, s)
	return &Section{s}
}

// Write writes the page to a file and says so below the command's report.
func (p *Page) Write(c *cli.Context, path string) error {
	var b bytes.Buffer
	if err := p.Document.Write(&b); err != nil {
		return err
	}
	return outfile.WriteReport(c, path, b.Bytes())
}

// Section is a section of a page. Functions that print a report fill it: it is a [term.Recorder].
type Section struct{ section *report.Section }

var _ term.Recorder = (*Section)(nil)

// Write adds lines of text as paragraphs. An indented line belongs to the one before it, and empty lines are left out.
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

// Table adds a table, unless it has no rows.
func (s *Section) Table(t *term.Table) {
	if len(t.Rows) > 0 {
		s.section.Add(report.Block{Table: &report.Table{Head: t.Head, Rows: t.Rows}})
	}
}

// alerts are the first words of remarks that stand out.
var alerts = []string{"INVALID", "NOT DROP-IN", "NOT OK", "problem", "warning", "not done"}

// Remark adds a remark.
func (s *Section) Remark(word, text string) {
	s.section.Add(report.Block{Remark: &report.Remark{Word: word, Text: text, Alert: slices.Contains(alerts, word)}})
}

// Picture adds a chart with a caption.
func (s *Section) Picture(c chart.Chart, caption string) {
	s.section.Add(report.Block{Picture: &report.Picture{Chart: c, Caption: caption}})
}

// Folded adds a part that is shown when its title is opened.
func (s *Section) Folded(title string) *Section {
	inner := &report.Section{Title: title}
	s.section.Add(report.Block{Folded: inner})
	return &Section{inner}
}
