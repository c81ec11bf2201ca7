package pass_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/transform"
)

// TestArguments: every pass takes or refuses the recorded arguments.
func TestArguments(t *testing.T) {
	var b strings.Builder
	lists := []string{"-1", "0", "0.0001", "0.001", "0.1", "0.4999", "0.5", "0.99", "1", "1.0001", "2", "3", "4", "7", "8", "10", "11", "16", "23", "24", "63", "64", "65", "100", "1000", "1025", "1e-9", "1e9", "NaN", "Inf", "x", "",
		"2:4", "4:2", "1:4", "16x1", "1x16", "0x1", "labels", "uncached", "given", "given/a/b", "tour", "given/", "element", "rows", "columns",
		"1/truncate", "3/truncate", "3/trunc", "0.3/element", "0.3/16x1", "0.3/2:4", "0.3/16", "4/epilogue", "4/epilogue/x", "1/2", "1/2/3", "8/8"}
	for _, row := range transform.Passes {
		p := row.Pass
		fmt.Fprintf(&b, "%s takes", p.Name)
		if p.Args == nil {
			fmt.Fprintln(&b, " none")
			continue
		}
		for _, list := range lists {
			if p.Args(strings.Split(list, "/")) == nil {
				fmt.Fprintf(&b, " %s", list)
			}
		}
		fmt.Fprintln(&b)
	}
	goldenfile.Same(t, "testdata/arguments.txt", []byte(b.String()))
}
