package pattern

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
)

// TestEdits: words have these distances and suggestions; a distance of 3 stands for all larger ones between words of quite different lengths.
func TestEdits(t *testing.T) {
	var b strings.Builder
	words := []string{"", "a", "ab", "abs", "bas", "clip", "clpi", "const", "constant", "normal", "nromal", "noraml", "normally", "sort", "sports", "sparse", "spar", "sp", "zeros", "zerosss", "zerosssss"}
	for _, x := range words {
		for _, y := range words {
			d := edits(x, y)
			fmt.Fprintf(&b, "%d ", d)
			if back := edits(y, x); back != d {
				t.Errorf("%q and %q: %d, and %d in the other order", x, y, d, back)
			}
		}
		fmt.Fprintf(&b, "%q%s\n", x, suggest(x, []string{"abs", "clip", "const", "normal", "sort", "sparse", "zeros", "a", "xy"}))
	}
	for n := range 4 {
		fmt.Fprintln(&b, list(words[1:1+n]))
	}
	goldenfile.Same(t, "testdata/edits.txt", []byte(b.String()))
}
