package cli

import (
	"errors"
	"strings"
	"syscall"

	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/transform/program"
)

// remedies lists what solves errors of the libraries: flags, which the libraries do not know, or another step.
var remedies = []struct {
	class error
	flags string
}{
	{transform.ErrNoTokens, "--tokens FILE"},
	{program.ErrNoHessians, "--tokens FILE"},
	{transform.ErrNoReference, "--reference MODEL"},
	{transform.ErrOtherDevice, "--device NUMBER, or leave --device out for the CPU"},
	{transform.ErrNoBudget, "--min-snr, or --max-loss with --tokens"},
	{transform.ErrNoLoss, "--min-snr"},
	{transform.ErrOtherFamily, "--arch FILE"},
	{apply.ErrUnfinished, "--resume"},
	{syscall.EFBIG, "raise ulimit -f, or use a disk that takes larger files"},
}

// message returns an error's text, with the flags that solve it. Each joined error has its own line.
func message(err error) string {
	if parts := joined(err); parts != nil {
		var lines []string
		for _, part := range parts {
			lines = append(lines, message(part))
		}
		return strings.Join(lines, "\n")
	}
	for _, r := range remedies {
		if errors.Is(err, r.class) {
			return indented(err) + " (" + r.flags + ")"
		}
	}
	return indented(err)
}

// indented returns an error's text with all lines but the first indented. A file's name in the text may hold line
// breaks. Without the indent, the rest of the name would look like another error.
func indented(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		if i > 0 && !strings.HasPrefix(line, "  ") {
			lines[i] = "  " + line
		}
	}
	return strings.Join(lines, "\n")
}

// joined returns the parts of an error by [errors.Join], even if the error is wrapped without a change of its text. For
// other errors, the result is nil.
func joined(err error) []error {
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		if errors.Join(e.Unwrap()...).Error() == err.Error() {
			return e.Unwrap()
		}
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil && inner.Error() == err.Error() {
			return joined(inner)
		}
	}
	return nil
}
