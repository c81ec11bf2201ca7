package cli

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/apply"
)

// marked is an error of a class whose text does not name the class.
type marked struct{ error }

func (marked) Is(target error) bool { return target == apply.ErrUnfinished }
func (m marked) Unwrap() error      { return m.error }

// TestMessage: the flags that solve an error follow its text, on the line of each joined error.
func TestMessage(t *testing.T) {
	tokens := fmt.Errorf("a: %w", transform.ErrNoTokens)
	other := errors.New("b")
	for _, c := range []struct {
		err  error
		want string
	}{
		{other, "b"},
		{tokens, "a: give tokens (--tokens FILE)"},
		{exit.Usage(errors.Join(tokens, other, transform.ErrNoLoss)), "a: give tokens (--tokens FILE)\nb\nwithout tokens, give a budget of output SNR (--min-snr)"},
		{marked{other}, "b (--resume)"},
		{fmt.Errorf("a: %w", syscall.EFBIG), "a: file too large (raise ulimit -f, or use a disk that takes larger files)"},
		{fmt.Errorf("%w: %w", other, tokens), "b: a: give tokens (--tokens FILE)"},
		{fmt.Errorf("c: %w", errors.Join(other, tokens)), "c: b\n  a: give tokens (--tokens FILE)"},
	} {
		if got := message(c.err); got != c.want {
			t.Errorf("%q is told as %q, want %q", c.err, got, c.want)
		}
	}
}
