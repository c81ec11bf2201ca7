// Package report writes reports as HTML: one file with text, tables, charts and the origin of every number. The file
// has no references to other files and no script. It is readable on light and dark screens and on a phone.
//
// The package is independent of models. All text is escaped, and invisible characters in it become visible (package
// printable).
package report

import "github.com/lowtoggle/lowtoggle/internal/chart"

// Document is a report.
type Document struct {
	Title    string
	Subtitle string
	// Main are the most important figures. They stand above all sections.
	Main     []Figure
	Sections []*Section
	// Origins are the origins of the numbers, for the last section.
	Origins []Origin
	// Command can be pasted into a shell to make the report again. Program, Version and Date describe the report's
	// creation.
	Command, Program, Version, Date string
}

// Figure is a number with its meaning.
type Figure struct {
	Label string // such as "energy, prefill"
	Value string // such as "−6.1 %"
	Range string // interval or other detail; empty: none
	How   How
}

// How is the way in which a number was obtained.
type How string

// Ways to obtain a number.
const (
	Predicted How = "predicted" // by a calibration
	Measured  How = "measured"  // on a card
	Simulated How = "simulated" // the number has no meaning
	Computed  How = "computed"  // from the weights, or by running the model
)

// Origin is the origin of numbers.
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

// Block is one part of a section. Exactly one field is set.
type Block struct {
	Text    string
	Remark  *Remark
	Table   *Table
	Picture *Picture
	Folded  *Section // shown when the reader opens its title
}

// Remark is a paragraph that begins with a word such as "note".
type Remark struct {
	Word, Text string
	Alert      bool // highlight the remark
}

// Table has a row of headings. Line breaks in a heading are kept. The first column holds names, the others figures. A
// last row is set apart if its first cell is "total".
type Table struct {
	Head []string
	Rows [][]string
}

// Picture is a chart with a caption below it.
type Picture struct {
	Chart   chart.Chart
	Caption string
}

// Narrow is the width of a chart, in pixels, that is readable on a phone.
const Narrow = 420

// Add appends blocks.
func (s *Section) Add(blocks ...Block) { s.Blocks = append(s.Blocks, blocks...) }
