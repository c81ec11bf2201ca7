package weights

import (
	"hash/fnv"
	"io/fs"
	"os"
)

// Stamp identifies the state of a file without reading its data. On Linux it also detects changes after which the time of the
// last write was set back.
type Stamp struct {
	Bytes    int64 `json:"bytes"`
	Modified int64 `json:"modified"`          // time of the last write, in ns since 1970
	Changed  int64 `json:"changed,omitempty"` // time of the last change of the data or the inode, in ns since 1970; 0 outside Linux
}

// StampOf returns the stamp of a file on this machine; the zero value if info is nil.
func StampOf(info fs.FileInfo) Stamp {
	if info == nil {
		return Stamp{}
	}
	return Stamp{info.Size(), info.ModTime().UnixNano(), changed(info)}
}

// stampOfObject returns a stamp that changes with the object's version.
func stampOfObject(o Object) Stamp {
	h := fnv.New64a()
	h.Write([]byte(o.Version))
	return Stamp{o.Size, int64(h.Sum64()), 0}
}

// Stamp returns the stamp that the file had when it was opened.
func (f *File) Stamp() Stamp { return f.stamp }

// Unchanged returns an error if the file's size or time of last write differs from when it was opened. For an object of a store
// it returns nil, because every read asks for the version that was opened.
func (f *File) Unchanged() error {
	if f.remote != nil {
		return nil
	}
	if f.arranged {
		return nil
	}
	info, err := os.Stat(f.Path)
	if err != nil {
		return err
	}
	if now := StampOf(info); now.Bytes != f.stamp.Bytes || now.Modified != f.stamp.Modified {
		return FileErrorf(f.Path, "was changed while lowtoggle read it: run the command again when no other process writes to the file")
	}
	return nil
}
