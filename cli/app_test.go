package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/term"
)

// TestComplain: errors keep all their words within a line's width, and joined errors begin their own lines.
func TestComplain(t *testing.T) {
	long := strings.Repeat("several words ", 20) + "end"
	var out bytes.Buffer
	complain(&out, errors.Join(errors.New(long), fmt.Errorf("second: %w", context.Canceled)))
	lines := strings.Split(out.String(), "\n")
	for i, line := range lines[:len(lines)-1] {
		if utf8.RuneCountInString(line) > term.Width || i > 0 && i < len(lines)-2 != strings.HasPrefix(line, "  ") {
			t.Errorf("line %d: %q", i, line)
		}
	}
	if have, want := strings.Join(strings.Fields(out.String()), " "), "lowtoggle: "+long+" second: interrupted"; have != want {
		t.Errorf("%q, not %q", have, want)
	}
}

// TestUnsaved: an interrupted command ends soon. If it has unsaved results, withinASecond waits for it.
func TestUnsaved(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	out, saved := exit.NewOutput(io.Discard), errors.New("saved")
	writing := make(chan struct{})
	work := func() error {
		<-writing
		return saved
	}
	if err := withinASecond(ctx, out, work); !errors.Is(err, context.Canceled) {
		t.Errorf("without unsaved results: %v", err)
	}
	exit.SetUnsaved(cli.NewContext(&cli.App{Writer: out}, nil, nil), true)
	time.AfterFunc(patience+200*time.Millisecond, func() { close(writing) })
	if err := withinASecond(ctx, out, work); !errors.Is(err, saved) {
		t.Errorf("unsaved: %v", err)
	}
}

// TestTimesWithoutUnit: a number without a unit gets another message than a value that is not a time.
func TestTimesWithoutUnit(t *testing.T) {
	for value, want := range map[string]string{"5": "lowtoggle: --time 5: give a unit, as in 5s", "soon": "lowtoggle: --time soon: give a time such as 30s or 5m"} {
		var stdout, stderr bytes.Buffer
		if status := Main(t.Context(), []string{"lowtoggle", "measure", "--time", value}, &stdout, &stderr); status != exit.WrongUsage || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: status %d, %s", value, status, stderr.String())
		}
	}
}

// TestValuesThatAreNoNumbers: the message says which kind of number the flag takes.
func TestValuesThatAreNoNumbers(t *testing.T) {
	for _, c := range []struct{ flag, value, want string }{
		{"seed", "-1", "lowtoggle: --seed -1: give a whole number of at least 0\n"},
		{"workers", "1e3", "lowtoggle: --workers 1e3: give a whole number\n"},
		{"min-snr", "high", "lowtoggle: --min-snr high: give a number\n"},
	} {
		var stdout, stderr bytes.Buffer
		if status := Main(t.Context(), []string{"lowtoggle", "plan", "m", "--" + c.flag, c.value}, &stdout, &stderr); status != exit.WrongUsage || stderr.String() != c.want {
			t.Errorf("--%s %s: status %d, %s", c.flag, c.value, status, stderr.String())
		}
	}
}

// unwrap undoes wrap. It joins lines if the next word had no room.
func unwrap(text string) string {
	var b strings.Builder
	whole, shown := "", "" // an original line, and the lines that it was broken into
	for i, line := range strings.Split(text, "\n") {
		rest, continued := strings.CutPrefix(line, "  ")
		joined, lines := whole+" "+rest, shown+"\n"+line
		indent := whole[:len(whole)-len(strings.TrimLeft(whole, " "))]
		switch {
		case continued && i > 0 && term.Wrap(joined, indent, "  ", term.Width) == lines+"\n":
			whole, shown = joined, lines
			b.WriteString(" " + rest)
			continue
		case i > 0:
			b.WriteString("\n")
		}
		b.WriteString(line)
		whole, shown = line, line
	}
	return b.String()
}
