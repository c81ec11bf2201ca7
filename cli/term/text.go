package term

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lowtoggle/lowtoggle/internal/printable"
)

// Count formats a number with spaces between groups of three digits.
func Count(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// Plural formats n with a noun. The noun is one if n is 1, and many otherwise.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

// Size formats a number of bytes with a decimal unit, such as MB.
func Size(n int64) string {
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

// Duration formats a time with about three digits.
func Duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// Decibels formats a signal-to-noise ratio in dB; nil as "–".
func Decibels(v *float64) string {
	if v == nil {
		return "–"
	}
	return strings.Replace(fmt.Sprintf("%.1f dB", *v), "-", "−", 1)
}

// Change formats a ratio after/before as a change in percent.
func Change(ratio float64) string {
	s := fmt.Sprintf("%+.1f %%", 100*(ratio-1))
	if s[1:] == "0.0 %" {
		return s[1:]
	}
	return strings.Replace(s, "-", "−", 1)
}

// Signed formats a number with its sign and a fixed number of decimals. A number that rounds to 0 has no sign.
func Signed(v float64, decimals int) string {
	s := fmt.Sprintf("%+.*f", decimals, v)
	if strings.Trim(s[1:], "0.") == "" {
		return s[1:]
	}
	return strings.Replace(s, "-", "−", 1)
}

// MeasuredChange formats a ratio after/before as a change in percent, with more decimals if its interval is known.
func MeasuredChange(ratio float64, interval []float64) string {
	if interval == nil {
		return Change(ratio)
	}
	return Signed(100*(ratio-1), 2) + " %"
}

// Interval formats an interval of ratios as changes in percent, nil as "–".
func Interval(interval []float64) string {
	if interval == nil {
		return "–"
	}
	return Signed(100*(interval[0]-1), 2) + " … " + Signed(100*(interval[1]-1), 2) + " %"
}

// CommandLine formats a lowtoggle command, quoted for a shell.
func CommandLine(words ...string) string { return "lowtoggle " + Words(words...) }

// Words formats words of a command line, quoted for a shell.
func Words(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = w
		if printable.Quote(w) != w {
			quoted[i] = printfOf(w)
		} else if w == "" || strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_") != "" {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// printfOf writes a word with unprintable characters as a shell's command substitution of printf. The shell drops
// line breaks at the word's end.
func printfOf(w string) string {
	var b strings.Builder
	for _, c := range []byte(w) {
		switch {
		case c < ' ' || c >= 0x7f || c == '\'' || c == '\\':
			fmt.Fprintf(&b, `\%03o`, c)
		case c == '%':
			b.WriteString("%%")
		default:
			b.WriteByte(c)
		}
	}
	return `"$(printf '` + b.String() + `')"`
}

// CommandIndent begins a line of a message that holds a command to copy. Such lines are not wrapped.
const CommandIndent = "    "

// Wrap breaks text into lines of at most width characters. The first line begins with first, the others with indent.
// Longer words are not broken, and neither are lowtoggle commands, because users copy them. A number stays on the line
// of its unit and of "±".
func Wrap(text, first, indent string, width int) string {
	var b strings.Builder
	line, empty := first, true
	for _, word := range withUnits(wholeCommands(strings.Fields(text))) {
		word = printable.Quote(word)
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

// units are the words that stay on the line of the number before them.
var units = strings.Fields("% dB W mW J mJ kJ Wh kWh s ms µs h B kB MB GB TB MiB GiB MHz GHz")

// withUnits joins numbers with their units, and "±" with the words around it.
func withUnits(words []string) (joined []string) {
	for i, word := range words {
		if i == 0 {
			joined = append(joined, word)
			continue
		}
		before := words[i-1]
		number := before[len(before)-1] >= '0' && before[len(before)-1] <= '9'
		if before == "±" || word == "±" || number && slices.Contains(units, strings.TrimRight(word, ".,;:)")) {
			joined[len(joined)-1] += " " + word
			continue
		}
		joined = append(joined, word)
	}
	return joined
}

// wholeCommands joins the words of each lowtoggle command in a text. A command is a name, flags with their values,
// arguments in capitals, and quoted text.
func wholeCommands(words []string) (joined []string) {
	for i := 0; i < len(words); i++ {
		if strings.TrimLeft(words[i], "(") != "lowtoggle" {
			joined = append(joined, words[i])
			continue
		}
		command, ended := words[i], false
		for first := true; i+1 < len(words) && !ended; first = false {
			next, inQuotes := words[i+1], strings.Count(command, "'")%2 == 1
			value := !first && strings.HasPrefix(words[i], "-")
			capitals := strings.ToUpper(next) == next && strings.ToLower(next) != next
			if !first && !inQuotes && !value && !capitals && !strings.HasPrefix(next, "-") {
				break
			}
			command += " " + next
			i++
			ended = strings.Count(command, "'")%2 == 0 && strings.ContainsAny(next[len(next)-1:], ".,;)")
		}
		joined = append(joined, command)
	}
	return joined
}

// Remark prints a wrapped paragraph of a report that begins with a word such as "note". A command after the text gets
// its own line with [CommandIndent]. A [Recorder] gets the remark itself.
func Remark(w io.Writer, word, text string) {
	if r, ok := w.(Recorder); ok {
		r.Remark(word, text)
		return
	}
	text, command, _ := strings.Cut(text, "\n"+CommandIndent)
	fmt.Fprint(w, Wrap(printable.Cut(text), word+": ", "  ", Width))
	if command != "" {
		fmt.Fprintln(w, CommandIndent+printable.Quote(command))
	}
}

// Remarks prints a list of remarks. Of a long list, it prints the first 20, unless w is a [Recorder].
func Remarks(w io.Writer, word string, list []string) {
	const most = 20
	_, all := w.(Recorder)
	for i, text := range list {
		if i == most && !all {
			fmt.Fprintf(w, "… and %d more; --json shows all\n", len(list)-most)
			return
		}
		Remark(w, word, text)
	}
}

// JSON writes v as an indented document.
func JSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
