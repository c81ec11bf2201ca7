package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// count writes a number with spaces between groups of three digits.
func count(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// plural writes a number and what is counted.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
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

// duration writes a time with as many digits as a reader wants.
func duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
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
	if s[1:] == "0.0 %" {
		return s[1:]
	}
	return strings.Replace(s, "-", "−", 1)
}

// command writes a command line that can be pasted into a shell.
func command(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = w
		if w == "" || strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_") != "" {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return "lowtoggle " + strings.Join(quoted, " ")
}

// wrap breaks text into lines of at most width characters, the first behind first and the others
// behind indent. Words that are longer stay whole.
func wrap(text, first, indent string, width int) string {
	var b strings.Builder
	line, empty := first, true
	for _, word := range strings.Fields(text) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			b.WriteString(line + "\n")
			line, empty = indent, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	b.WriteString(line + "\n")
	return b.String()
}

// remark prints a wrapped line of a report that begins with a word such as "note".
func remark(w io.Writer, word, text string) {
	fmt.Fprint(w, wrap(text, word+": ", "  ", lineWidth))
}

// remarks prints a list of remarks, the first ones of a long list.
func remarks(w io.Writer, word string, list []string) {
	const most = 20
	for i, text := range list {
		if i == most {
			fmt.Fprintf(w, "… and %s; --json shows all\n", plural(len(list)-most, "more "+word, "more "+word+"s"))
			return
		}
		remark(w, word, text)
	}
}

// printJSON writes a document to standard output.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
