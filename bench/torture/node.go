//go:build linux

package main

import (
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// node is a file, folder or link of the disk. It holds the contents that processes see, and the durable contents that survive a
// loss of power.
type node struct {
	id       uint64
	mode     uint32 // permissions and type
	uid, gid uint32
	modified time.Time
	data     []byte           // contents of a file; target of a link
	entries  map[string]*node // of a folder

	stable  map[string]*node // the durable entries of a folder
	changed map[string]int   // the change that made each durable entry
	durable []byte           // the durable data of a file
	dirty   bool             // data and durable differ
	lost    bool             // an fsync failed, so unsynced and later data never becomes durable
}

func (n *node) isDir() bool { return n.mode&syscall.S_IFMT == syscall.S_IFDIR }

// file is one entry of a tree: the mode of a file, folder or link, and the data of a file.
type file struct {
	mode uint32
	data string
}

// tree maps the paths of files, folders and links to their contents. A path has no leading slash.
type tree map[string]file

const (
	folderMode = syscall.S_IFDIR | 0o755
	fileMode   = syscall.S_IFREG | 0o644
)

// add adds a file and the folders that lead to it.
func (t tree) add(name, data string) {
	t[name] = file{fileMode, data}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		t[dir] = file{folderMode, ""}
	}
}

// below returns the part of a tree in a folder, with the folder itself.
func (t tree) below(folder string) tree {
	out := tree{}
	for name, f := range t {
		if name == folder || strings.HasPrefix(name, folder+"/") {
			out[name] = f
		}
	}
	return out
}

// leftOver is the end of a difference for a path that should not exist.
const leftOver = ": should not be there"

// differences lists the paths at which two trees differ, and how.
func differences(got, want tree) []string {
	var out []string
	all := maps.Clone(got)
	maps.Copy(all, want)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		g, there := got[name]
		w, wanted := want[name]
		switch {
		case !there:
			out = append(out, name+": is missing")
		case !wanted:
			out = append(out, name+leftOver)
		case g.mode != w.mode:
			out = append(out, name+": another mode")
		case len(g.data) != len(w.data):
			out = append(out, name+": another size")
		case g.data != w.data:
			out = append(out, name+": other bytes")
		}
	}
	return out
}
