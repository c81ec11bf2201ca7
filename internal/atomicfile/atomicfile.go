// Package atomicfile writes files that are whole or not there. A file gets its name when its data is on
// the disk (fsync), and the folder's entry is on the disk before the functions return.
package atomicfile

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
)

// permissions of a new file, less the umask. A file that is replaced keeps its own.
const permissions = 0o666

// bufferSize is large enough for few system calls.
const bufferSize = 1 << 18

// Write creates or replaces the file at path with data.
func Write(path string, data []byte) error {
	return Stream(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Stream creates or replaces the file at path with what fill writes, which is buffered. Where fill fails,
// its error is returned and the file at path is as it was.
//
// Until the file is whole its data lies beside it, under a name that IsPartial knows. A process that is
// killed leaves that file.
func Stream(path string, fill func(w io.Writer) error) (err error) {
	f, err := pending(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Cleanup()) }() // does nothing once the file is replaced
	w := bufio.NewWriterSize(f, bufferSize)
	if err := fill(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

var partial = regexp.MustCompile(`^\.(.+?)[0-9]+$`)

// IsPartial says whether a file's name, without its folder, may be that of an unfinished file of Stream,
// and returns the name that the file was to get. A digit at the end of that name is lost.
func IsPartial(name string) (of string, ok bool) {
	m := partial.FindStringSubmatch(name)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// SyncFolder waits until a folder's entries are on the disk. Windows cannot flush a folder; there it does
// nothing.
func SyncFolder(folder string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
