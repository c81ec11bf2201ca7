package term

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/lowtoggle/lowtoggle/internal/printable"
)

// Width is the largest number of characters in a line of a report. Only paths and full names of tensors may be
// longer.
const Width = 100

// Table is text in columns. The first column is aligned left, the others right.
type Table struct {
	Head  []string // "\n" breaks a heading into lines
	Rows  [][]string
	Whole bool // never shorten the first column
}

// NewTable returns a table with these column headings.
func NewTable(head ...string) *Table { return &Table{Head: head} }

// Add appends a row. Each cell is one line. [printable.Quote] escapes unprintable characters in cells.
func (t *Table) Add(cells ...string) {
	for i, cell := range cells {
		cells[i] = printable.Quote(printable.Cut(cell))
	}
	t.Rows = append(t.Rows, cells)
}

// Print writes the table. A rule stands below the headings, and above a last row whose first cell is "total". A
// [Recorder] gets the table itself.
func (t *Table) Print(w io.Writer) {
	if r, ok := w.(Recorder); ok {
		r.Table(t)
		return
	}
	head := headLines(t.Head)
	width := make([]int, len(t.Head))
	for _, row := range append(head, t.Rows...) {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	if !t.Whole {
		width[0] = min(width[0], max(8, Width-sum(width[1:])-2*(len(width)-1)))
	}
	rule := make([]string, len(t.Head))
	for i := range rule {
		rule[i] = strings.Repeat("─", width[i])
	}
	for _, row := range append(head, rule) {
		printRow(w, row, width)
	}
	for i, row := range t.Rows {
		if i > 0 && i == len(t.Rows)-1 && row[0] == "total" {
			printRow(w, rule, width)
		}
		printRow(w, row, width)
	}
}

func printRow(w io.Writer, row []string, width []int) {
	var b strings.Builder
	for i, cell := range row {
		if i == 0 {
			cell = Shorten(cell, width[0])
			b.WriteString(cell + strings.Repeat(" ", width[0]-utf8.RuneCountInString(cell)))
			continue
		}
		b.WriteString(strings.Repeat(" ", 2+width[i]-utf8.RuneCountInString(cell)) + cell)
	}
	fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
}

// headLines breaks the headings into lines and aligns them at the bottom.
func headLines(head []string) [][]string {
	high := 1
	for _, name := range head {
		high = max(high, 1+strings.Count(name, "\n"))
	}
	lines := make([][]string, high)
	for i := range lines {
		lines[i] = make([]string, len(head))
	}
	for i, name := range head {
		parts := strings.Split(name, "\n")
		for j, part := range parts {
			lines[high-len(parts)+j][i] = part
		}
	}
	return lines
}

// Shorten cuts a name to its last width characters, because the end of a tensor's name is more specific.
func Shorten(s string, width int) string {
	if over := utf8.RuneCountInString(s) - width; over > 0 {
		return "…" + string([]rune(s)[over+1:])
	}
	return s
}

func sum(list []int) (s int) {
	for _, v := range list {
		s += v
	}
	return s
}
