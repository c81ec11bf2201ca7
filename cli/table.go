package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// table is text in columns: the first column to the left, the others to the right.
type table struct {
	head []string
	rows [][]string
}

func newTable(head ...string) *table { return &table{head: head} }

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// print writes the table; a rule stands below the head, and above a last row that begins with
// "total".
func (t *table) print(w io.Writer) {
	width := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	line := func(row []string) {
		var b strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			switch {
			case i == 0:
				b.WriteString(cell + pad)
			default:
				b.WriteString("  " + pad + cell)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
	rule := make([]string, len(t.head))
	for i := range rule {
		rule[i] = strings.Repeat("─", width[i])
	}
	line(t.head)
	line(rule)
	for i, row := range t.rows {
		if i > 0 && i == len(t.rows)-1 && row[0] == "total" {
			line(rule)
		}
		line(row)
	}
}

// count writes a number with spaces between groups of three digits.
func count(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// size writes a number of bytes.
func size(n int64) string {
	switch v := float64(n); {
	case v >= 1e9:
		return fmt.Sprintf("%.2f GB", v/1e9)
	case v >= 1e6:
		return fmt.Sprintf("%.1f MB", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%.1f kB", v/1e3)
	}
	return fmt.Sprintf("%d B", n)
}

// decibels writes a signal-to-noise ratio; "–" where nothing is known.
func decibels(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.1f dB", *v)
}

// percent writes a ratio as a change.
func percent(ratio float64) string {
	s := fmt.Sprintf("%+.1f %%", 100*(ratio-1))
	return strings.Replace(s, "-", "−", 1)
}

// wrap breaks text into lines of at most width characters, each behind indent.
func wrap(text, indent string, width int) string {
	var b strings.Builder
	line := indent
	for _, word := range strings.Fields(text) {
		if line != indent && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			b.WriteString(line + "\n")
			line = indent
		}
		if line != indent {
			line += " "
		}
		line += word
	}
	b.WriteString(line + "\n")
	return b.String()
}
