package pattern

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SyntaxError describes an error in the text of a pattern, with its place.
type SyntaxError struct {
	Text string // the whole text
	Pos  int    // byte offset of the error
	Msg  string // text that was found, and text that was expected
}

// Error returns the message, and below it the text with a caret at the error.
func (e *SyntaxError) Error() string {
	visible := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return '·'
		}, s)
	}
	indent := strings.Repeat(" ", utf8.RuneCountInString(visible(e.Text[:e.Pos])))
	return fmt.Sprintf("%s\n  %s\n  %s^", e.Msg, visible(e.Text), indent)
}

// suggest returns the end of a message about an unknown word: the closest known word if one is similar, else all
// known words.
func suggest(word string, words []string) string {
	best, least := "", 3
	for _, w := range words {
		if d := edits(strings.ToLower(word), w); d < least && d < len(w) {
			best, least = w, d
		}
	}
	if best != "" {
		return fmt.Sprintf(": did you mean %s?", best)
	}
	return ": use " + list(words)
}

// list joins words like in a sentence.
func list(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// edits returns the Damerau–Levenshtein distance of a and b, or 3 if their lengths differ by more than two.
func edits(a, b string) int {
	if len(a) > len(b)+2 || len(b) > len(a)+2 {
		return 3
	}
	// Three rows of the table: row i has the distances of a[:i] to every beginning of b.
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			replace := last[j]
			if a[i] != b[j] {
				replace++
			}
			row[j+1] = min(replace, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
