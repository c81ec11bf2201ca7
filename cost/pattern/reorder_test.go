package pattern

import (
	"bytes"
	"math/bits"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// TestReorder: the rows are the same, the first row stays, and fewer bits differ between neighbours.
func TestReorder(t *testing.T) {
	s := Spec{weights.BF16, 96, 64, 4}
	const source = "set(6,normal(0,1)) | repeat(columns=32) | random(low=3)" // 36 kinds of rows that are not quite equal
	before, _ := generate(t, source, s)
	after, _ := generate(t, source+"| reorder(rows)", s)
	width := len(before) / s.Rows
	rows := func(data []byte) []string {
		var list []string
		for r := range s.Rows {
			list = append(list, string(data[r*width:][:width]))
		}
		return list
	}
	toggles := func(data []byte) (n int) {
		for i := range data[width:] {
			n += bits.OnesCount8(data[i] ^ data[i+width])
		}
		return n
	}
	if toggles(after) > toggles(before)/2 {
		t.Errorf("%d bits between neighbours before, %d after", toggles(before), toggles(after))
	}
	was, is := rows(before), rows(after)
	if was[0] != is[0] {
		t.Error("the first row moved")
	}
	slices.Sort(was)
	slices.Sort(is)
	if !slices.Equal(was, is) {
		t.Error("the rows are no longer the same")
	}
	across, _ := generate(t, source+"| transpose | reorder(columns) | transpose", s)
	if !bytes.Equal(across, after) {
		t.Error("columns are not reordered as rows are")
	}
}
