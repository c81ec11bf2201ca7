// Package printable makes text of unknown origin safe to print, such as tensor names, file names and fields of a
// downloaded model. Such text could control a terminal. Characters that move the cursor, change colours, reverse the
// direction of text or are invisible become escapes.
package printable

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Longest is the largest length, in bytes, of a printed text. A path has at most 4 096 bytes.
const Longest = 5000

// Quote returns s in one line. Control characters, line and paragraph separators, bidirectional and invisible
// characters become \n, \t, \r or \u and the four hexadecimal digits of each UTF-16 unit. Bytes that are not UTF-8
// become \x and two digits. All other text does not change, including backslashes.
//
// HTML needs its own escaping of the result.
func Quote(s string) string { return escape(s, "") }

// Cut returns s. Of a long s it returns only the beginning and the end, with the number of omitted bytes between
// them.
func Cut(s string) string {
	const beginning, end = 1000, 400
	if len(s) <= Longest {
		return s
	}
	return fmt.Sprintf("%s … (%d bytes left out) … %s", strings.ToValidUTF8(s[:beginning], ""),
		len(s)-beginning-end, strings.ToValidUTF8(s[len(s)-end:], ""))
}

// Writer escapes text like [Quote], except newlines and tabs. JSON remains JSON with the same values, because the
// escapes are JSON's.
type Writer struct {
	w    io.Writer
	rest []byte // the beginning of a character that two writes share
}

// NewWriter returns a writer that writes to w. It buffers only a character that is split between two writes.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Unwrap returns the underlying writer.
func (w *Writer) Unwrap() io.Writer { return w.w }

func (w *Writer) Write(p []byte) (int, error) {
	whole := p
	if len(w.rest) > 0 {
		whole = append(w.rest, p...)
		w.rest = nil
	}
	for i := max(0, len(whole)-utf8.UTFMax+1); i < len(whole); i++ {
		if utf8.RuneStart(whole[i]) && !utf8.FullRune(whole[i:]) {
			w.rest = append([]byte(nil), whole[i:]...)
			whole = whole[:i]
		}
	}
	if _, err := io.WriteString(w.w, escape(string(whole), "\n\t")); err != nil {
		return 0, err
	}
	return len(p), nil
}

// escape replaces special characters, except those in except.
func escape(s, except string) string {
	plain := func(r rune) bool { return !special(r) || strings.ContainsRune(except, r) }
	if strings.IndexFunc(s, func(r rune) bool { return r == utf8.RuneError || !plain(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case plain(r):
			b.WriteString(s[:n])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		}
		s = s[n:]
	}
	return b.String()
}

// special reports whether a character affects a terminal or the text around it, or is invisible. Variation selectors
// and fillers are invisible too, although Unicode counts them as letters or marks.
func special(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Noncharacter_Code_Point,
		unicode.Variation_Selector) || r == 0x115f || r == 0x1160 || r == 0x3164 || r == 0xffa0
}
