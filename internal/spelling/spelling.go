// Package spelling suggests names for a mistyped name.
package spelling

import "fmt"

// DidYouMean returns a question with the name closest to a mistyped word; "" if no name is close.
func DidYouMean(prefix, word string, names []string) string {
	best := Closest(word, names)
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s%s?)", prefix, best)
}

// Closest returns the name closest to a mistyped word; "" if none is within two edits.
func Closest(word string, names []string) string {
	best, least := "", 3
	for _, name := range names {
		if d := distance(word, name); d < least && d < len(name) {
			best, least = name, d
		}
	}
	return best
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
