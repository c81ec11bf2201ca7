package apply

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/lowtoggle/lowtoggle/internal/lock"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// ErrTemporary marks an error after which the same part may succeed if it is run again: an error of the network, a
// full or vanished disk, an interrupt, or another process that writes the part.
var ErrTemporary = errors.New("run this part again")

// retry is an [ErrTemporary] with its own text.
type retry struct{ error }

func (retry) Is(target error) bool { return target == ErrTemporary }
func (r retry) Unwrap() error      { return r.error }

// temporaryErrors are the temporary errors of the network and of disks.
var temporaryErrors = []syscall.Errno{
	syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.ESTALE, syscall.ETIMEDOUT, syscall.EAGAIN, syscall.EBUSY, syscall.EINTR,
	syscall.ENODEV, syscall.ENXIO, syscall.ENOTCONN, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.ECONNREFUSED,
	syscall.EHOSTDOWN, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.ENETUNREACH, syscall.ENETRESET,
}

// Temporary marks err as an [ErrTemporary] if running the part again may succeed. dir is the folder of the parts. A
// missing file in dir counts as temporary, because it may appear later.
func Temporary(err error, dir string) error {
	is := func(e error) bool { return errors.Is(err, e) }
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case err == nil || is(ErrTemporary):
		return err
	case is(weights.ErrUnreachable) || is(lock.ErrHeld):
		return retry{err}
	case parallel.Ended(err) || is(weights.ErrFault):
		return retry{err}
	case slices.ContainsFunc(temporaryErrors, func(e syscall.Errno) bool { return is(e) }):
		return retry{err}
	case is(fs.ErrNotExist) && errors.As(err, &path) && (path.Path == dir || strings.HasPrefix(path.Path, dir+string(filepath.Separator))):
		return retry{err}
	case is(fs.ErrNotExist) && errors.As(err, &link): // a rename from or to dir
		return retry{err}
	}
	return err
}
