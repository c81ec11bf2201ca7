package weights

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

func TestUninterrupted(t *testing.T) {
	for _, end := range []error{nil, unix.ENOSPC} {
		calls := 0
		err := uninterrupted(func() error {
			if calls++; calls < 4 {
				return unix.EINTR
			}
			return end
		})
		if !errors.Is(err, end) || calls != 4 {
			t.Errorf("%d calls, error %v; want 4 and %v", calls, err, end)
		}
	}
}
