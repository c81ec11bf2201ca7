package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// lineWidth is how many characters a line of a report has at most; only paths and the full names
// of tensors may make it longer.
const lineWidth = 100

// table is text in columns: the first column to the left, the others to the right.
type table struct {
	head  []string // "\n" parts a name over several lines
	rows  [][]string
	whole bool // the first column is never shortened, whatever the table's width
}

func newTable(head ...string) *table { return &table{head: head} }

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// print writes the table; a rule stands below the head, and above a last row that begins with
// "total".
func (t *table) print(w io.Writer) {
	head := headLines(t.head)
	width := make([]int, len(t.head))
	for _, row := range append(head, t.rows...) {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	if !t.whole {
		width[0] = min(width[0], max(8, lineWidth-sum(width[1:])-2*(len(width)-1)))
	}
	rule := make([]string, len(t.head))
	for i := range rule {
		rule[i] = strings.Repeat("─", width[i])
	}
	for _, row := range append(head, rule) {
		printRow(w, row, width)
	}
	for i, row := range t.rows {
		if i > 0 && i == len(t.rows)-1 && row[0] == "total" {
			printRow(w, rule, width)
		}
		printRow(w, row, width)
	}
}

func printRow(w io.Writer, row []string, width []int) {
	var b strings.Builder
	for i, cell := range row {
		if i == 0 {
			cell = shorten(cell, width[0])
			b.WriteString(cell + strings.Repeat(" ", width[0]-utf8.RuneCountInString(cell)))
			continue
		}
		b.WriteString(strings.Repeat(" ", 2+width[i]-utf8.RuneCountInString(cell)) + cell)
	}
	fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
}

// headLines parts the columns' names into lines; the last lines of all stand beside each other.
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

// shorten leaves out the beginning of a name that is too long: its end tells more.
func shorten(s string, width int) string {
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
