package apply

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/lowtoggle/lowtoggle/internal/lock"
	"github.com/lowtoggle/lowtoggle/weights"
)

// ErrTemporary marks an error after which the same part may succeed if it is run again: of the network, of a full or
// vanished disk, of an interrupt, or because another process is busy with the part.
var ErrTemporary = errors.New("run this part again")

// retry is an [ErrTemporary] with a text of its own.
type retry struct{ error }

func (retry) Is(target error) bool { return target == ErrTemporary }
func (r retry) Unwrap() error      { return r.error }

// temporaryErrors are those of the network and of disks.
var temporaryErrors = []syscall.Errno{
	syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.ESTALE, syscall.ETIMEDOUT, syscall.EAGAIN, syscall.EBUSY, syscall.EINTR,
	syscall.ENODEV, syscall.ENXIO, syscall.ENOTCONN, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.ECONNREFUSED,
	syscall.EHOSTDOWN, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.ENETUNREACH, syscall.ENETRESET,
}

// Temporary marks an error as an [ErrTemporary] if it is one. dir is the folder of the parts: something that vanished from
// there may come back.
func Temporary(err error, dir string) error {
	is := func(e error) bool { return errors.Is(err, e) }
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case err == nil || is(ErrTemporary):
		return err
	case is(weights.ErrUnreachable) || is(lock.ErrHeld):
		return retry{err}
	case is(context.Canceled) || is(context.DeadlineExceeded) || is(weights.ErrFault):
		return retry{err}
	case slices.ContainsFunc(temporaryErrors, func(e syscall.Errno) bool { return is(e) }):
		return retry{err}
	case is(fs.ErrNotExist) && errors.As(err, &path) && (path.Path == dir || strings.HasPrefix(path.Path, dir+string(filepath.Separator))):
		return retry{err}
	case is(fs.ErrNotExist) && errors.As(err, &link): // renamed from or to there
		return retry{err}
	}
	return err
}
