package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cli/exit"
)

// TestEveryCommandTakesLog: a command with progress takes --log, and the value is checked before any work.
func TestEveryCommandTakesLog(t *testing.T) {
	a := newApp(io.Discard, io.Discard)
	for _, cmd := range a.VisibleCommands() {
		var names []string
		for _, f := range cmd.Flags {
			names = append(names, f.Names()[0])
		}
		all := " " + strings.Join(names, " ") + " "
		if strings.Contains(all, " quiet ") && !strings.Contains(all, " log ") {
			t.Errorf("%s has --quiet and no --log", cmd.Name)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--log", "xml"}, "lowtoggle: --log xml: give text, json or none\n"},
		{[]string{"--log", "json", "--quiet"}, "lowtoggle: --quiet and --log json exclude each other: leave one out\n"},
	} {
		var stderr bytes.Buffer
		status := Main(t.Context(), append([]string{"lowtoggle", "passes"}, c.args...), io.Discard, &stderr)
		if status != exit.WrongUsage || stderr.String() != c.want {
			t.Errorf("%q: status %d, %q", c.args, status, stderr.String())
		}
	}
}
