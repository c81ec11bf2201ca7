// Package report writes reports as HTML: one file with text, tables, charts and the origin of every number. The file refers
// to nothing outside itself and has no script. It is readable on light and dark screens and on a phone.
//
// The package knows nothing of models. All text is escaped, and invisible characters in it are shown (package printable).
package report

import "github.com/lowtoggle/lowtoggle/internal/chart"

// Document is a report.
type Document struct {
	Title    string
	Subtitle string
	// Main are the few figures that stand above all sections.
	Main     []Figure
	Sections []*Section
	// Origins say where the numbers come from, in the last section.
	Origins []Origin
	// Command can be pasted into a shell to make the report again. Program, Version and Date say what made it, and when.
	Command, Program, Version, Date string
}

// Figure is a number with its meaning.
type Figure struct {
	Label string // such as "energy, prefill"
	Value string // such as "−6.1 %"
	Range string // interval or other detail; empty: none
	How   How
}

// How says how a number came to be known.
type How string

// Ways to know a number.
const (
	Predicted How = "predicted" // by a calibration
	Measured  How = "measured"  // on a card
	Simulated How = "simulated" // means nothing
	Computed  How = "computed"  // from the weights, or by running the model
)

// Origin is where numbers come from.
type Origin struct {
	What string // such as "energy of the linear layers"
	How  How
	From string // such as a calibration, or a card with its short id
}

// Section is a part of a report under a heading.
type Section struct {
	Title  string
	Blocks []Block
}

// Block is one part of a section: exactly one field is set.
type Block struct {
	Text    string
	Remark  *Remark
	Table   *Table
	Picture *Picture
	Folded  *Section // shown when its title is opened
}

// Remark is a paragraph that begins with a word such as "note".
type Remark struct {
	Word, Text string
	Alert      bool // stands out
}

// Table has a row of headings. A line break in a heading is kept. The first column holds names, the others figures. A last row
// whose first cell is "total" stands apart.
type Table struct {
	Head []string
	Rows [][]string
}

// Picture is a chart with a caption below it.
type Picture struct {
	Chart   chart.Chart
	Caption string
}

// Narrow is the width of a chart in pixels that a phone shows in a readable size.
const Narrow = 420

// Add appends blocks.
func (s *Section) Add(blocks ...Block) { s.Blocks = append(s.Blocks, blocks...) }
