// Package atomicfile writes files that appear whole or not at all. A file gets its name when its data is on the disk
// (fsync). The folder's entry is on the disk before the functions return.
package atomicfile

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

// permissions of a new file, before the umask. A replaced file keeps its permissions.
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

// Stream creates or replaces the file at path with the data that fill writes. Writes are buffered. If fill returns an
// error, Stream returns this error and the file at path does not change.
//
// Until the file is whole, its data is in a file beside it, with a name that IsPartial recognises. A killed process
// leaves this file, and the next Stream to path removes it.
func Stream(path string, fill func(w io.Writer) error) (err error) {
	f, err := pending(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Cleanup()) }() // has no effect once the file is replaced
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

// Check returns an error if no file can be written at path. It leaves no file there.
func Check(path string) error {
	f, err := pending(path)
	if err != nil {
		return err
	}
	return f.Cleanup()
}

// RemoveLeft removes the unfinished files of killed processes in a folder. Files of running processes stay. A missing
// folder is no error.
func RemoveLeft(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) && e.Type().IsRegular() {
			removeLeft(filepath.Join(folder, e.Name()))
		}
	}
	return err
}

// suffix ends the name of an unfinished file.
const suffix = ".lowtoggle-partial"

// random matches a name of an unfinished file that could not get the name with suffix.
var random = regexp.MustCompile(`^\.(.+?)[0-9]+$`)

func randomName(path string) string { return hidden(path, strconv.FormatUint(rand.Uint64(), 10)) }

// IsPartial reports whether a file's name, without its folder, may belong to an unfinished file of Stream. of is the
// final name of that file. A digit at the end of of may be missing.
func IsPartial(name string) (of string, ok bool) {
	if of, ok := strings.CutSuffix(name, suffix); ok && len(of) > 1 && of[0] == '.' {
		return of[1:], true
	}
	m := random.FindStringSubmatch(name)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// SyncFolder waits until a folder's entries are on the disk. On Windows it does nothing, because Windows cannot flush
// a folder.
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
