//go:build linux

package main

import (
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// The operations of FUSE. Each asks the injector first.

func (d *disk) node(id uint64) (*node, fuse.Status) {
	if n := d.nodes[id]; n != nil {
		return n, fuse.OK
	}
	return nil, fuse.Status(syscall.ESTALE)
}

func (n *node) fill(a *fuse.Attr) {
	*a = fuse.Attr{Ino: n.id, Mode: n.mode, Nlink: 1, Owner: fuse.Owner{Uid: n.uid, Gid: n.gid}, Size: uint64(len(n.data)), Blksize: page}
	if n.isDir() {
		a.Nlink, a.Size = 2, page
	}
	a.Blocks = (a.Size + 511) / 512
	a.SetTimes(&n.modified, &n.modified, &n.modified)
}

func (n *node) fillEntry(out *fuse.EntryOut) {
	out.NodeId, out.Generation = n.id, 1
	n.fill(&out.Attr)
}

func (d *disk) Lookup(_ <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	return d.serve(opLookup, h.NodeId, func(dir *node) fuse.Status {
		child := dir.entries[name]
		if child == nil || d.hidden(dir, name) {
			return fuse.ENOENT
		}
		child.fillEntry(out)
		return fuse.OK
	})
}

func (d *disk) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	return d.serve(opGetAttr, in.NodeId, func(n *node) fuse.Status {
		n.fill(&out.Attr)
		return fuse.OK
	})
}

func (d *disk) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	o := opSetAttr
	if in.Valid&fuse.FATTR_SIZE != 0 {
		o = opResize
	}
	return d.serve(o, in.NodeId, func(n *node) fuse.Status {
		if in.Valid&fuse.FATTR_SIZE != 0 {
			d.resize(n, int(in.Size))
		}
		if in.Valid&fuse.FATTR_MODE != 0 {
			n.mode = n.mode&syscall.S_IFMT | in.Mode&0o7777
		}
		if in.Valid&fuse.FATTR_UID != 0 {
			n.uid = in.Uid
		}
		if in.Valid&fuse.FATTR_GID != 0 {
			n.gid = in.Gid
		}
		if in.Valid&fuse.FATTR_MTIME_NOW != 0 {
			n.modified = d.now()
		} else if in.Valid&fuse.FATTR_MTIME != 0 {
			n.modified = time.Unix(int64(in.Mtime), int64(in.Mtimensec))
		}
		n.fill(&out.Attr)
		return fuse.OK
	})
}

func (d *disk) resize(n *node, size int) {
	if size < len(n.data) {
		n.data = n.data[:size:size]
	} else {
		n.data = append(n.data, make([]byte, size-len(n.data))...)
	}
	n.dirty, n.modified = true, d.now()
}

// make adds a new node to a folder.
func (d *disk) make(dir *node, name string, mode uint32, h *fuse.InHeader) (*node, fuse.Status) {
	if dir.entries[name] != nil {
		return nil, fuse.Status(syscall.EEXIST)
	}
	n := d.newNode(mode)
	n.uid, n.gid = h.Uid, h.Gid
	dir.entries[name] = n
	dir.modified = d.now()
	d.record(entry{dir, name, n})
	return n, fuse.OK
}

func (d *disk) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return d.serve(opMkdir, in.NodeId, func(dir *node) fuse.Status {
		n, st := d.make(dir, name, syscall.S_IFDIR|in.Mode&0o7777, &in.InHeader)
		if st.Ok() {
			n.fillEntry(out)
		}
		return st
	})
}

func (d *disk) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	return d.serve(opCreate, in.NodeId, func(dir *node) fuse.Status {
		n := dir.entries[name]
		if n != nil && in.Flags&syscall.O_EXCL != 0 {
			return fuse.Status(syscall.EEXIST)
		}
		if n == nil {
			n, _ = d.make(dir, name, syscall.S_IFREG|in.Mode&0o7777, &in.InHeader)
		} else if in.Flags&syscall.O_TRUNC != 0 {
			d.resize(n, 0)
		}
		n.fillEntry(&out.EntryOut)
		return fuse.OK
	})
}

func (d *disk) Symlink(_ <-chan struct{}, h *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	return d.serve(opCreate, h.NodeId, func(dir *node) fuse.Status {
		n, st := d.make(dir, name, syscall.S_IFLNK|0o777, h)
		if st.Ok() {
			n.data, n.durable = []byte(target), []byte(target)
			n.fillEntry(out)
		}
		return st
	})
}

func (d *disk) Readlink(_ <-chan struct{}, h *fuse.InHeader) (target []byte, st fuse.Status) {
	st = d.serve(opLookup, h.NodeId, func(n *node) fuse.Status {
		target = n.data
		return fuse.OK
	})
	return target, st
}

func (d *disk) Unlink(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return d.serve(opUnlink, h.NodeId, func(dir *node) fuse.Status { return d.remove(dir, name) })
}

func (d *disk) Rmdir(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return d.serve(opRmdir, h.NodeId, func(dir *node) fuse.Status { return d.remove(dir, name) })
}

func (d *disk) remove(dir *node, name string) fuse.Status {
	n := dir.entries[name]
	if n == nil {
		return fuse.ENOENT
	}
	if len(n.entries) > 0 {
		return fuse.Status(syscall.ENOTEMPTY)
	}
	delete(dir.entries, name)
	dir.modified = d.now()
	d.record(entry{dir, name, nil})
	return fuse.OK
}

func (d *disk) Rename(_ <-chan struct{}, in *fuse.RenameIn, oldName, newName string) fuse.Status {
	return d.serve(opRename, in.NodeId, func(from *node) fuse.Status {
		to, st := d.node(in.Newdir)
		if !st.Ok() {
			return st
		}
		n, there := from.entries[oldName], to.entries[newName]
		const noReplace = 1
		switch {
		case n == nil:
			return fuse.ENOENT
		case in.Flags&^noReplace != 0:
			return fuse.EINVAL
		case there != nil && in.Flags&noReplace != 0:
			return fuse.Status(syscall.EEXIST)
		case there != nil && len(there.entries) > 0:
			return fuse.Status(syscall.ENOTEMPTY)
		}
		delete(from.entries, oldName)
		to.entries[newName] = n
		from.modified, to.modified = d.now(), d.now()
		d.record(entry{from, oldName, nil}, entry{to, newName, n})
		d.hide(to, newName)
		return fuse.OK
	})
}

func (d *disk) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return d.serve(opOpen, in.NodeId, func(n *node) fuse.Status {
		if in.Flags&syscall.O_TRUNC != 0 {
			d.resize(n, 0)
		}
		return fuse.OK
	})
}

func (d *disk) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (r fuse.ReadResult, st fuse.Status) {
	st = d.serve(opRead, in.NodeId, func(n *node) fuse.Status {
		at := min(int(in.Offset), len(n.data))
		r = fuse.ReadResultData(buf[:copy(buf, n.data[at:])])
		return fuse.OK
	})
	return r, st
}

func (d *disk) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (written uint32, st fuse.Status) {
	st = d.serve(opWrite, in.NodeId, func(n *node) fuse.Status {
		data := d.shortened(data)
		if d.room > 0 && d.used+int64(len(data)) > d.room {
			return fuse.Status(syscall.ENOSPC)
		}
		at := int(in.Offset)
		if in.Flags&syscall.O_APPEND != 0 {
			at = len(n.data)
		}
		if end := at + len(data); end > len(n.data) {
			d.resize(n, end)
		}
		copy(n.data[at:], data)
		n.dirty, n.modified = true, d.now()
		d.used += int64(len(data))
		written = uint32(len(data))
		return fuse.OK
	})
	return written, st
}

func (d *disk) Fallocate(_ <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	return d.serve(opResize, in.NodeId, func(n *node) fuse.Status {
		if in.Mode != 0 {
			return fuse.ENOTSUP
		}
		if end := int(in.Offset + in.Length); end > len(n.data) {
			if d.room > 0 && d.used+int64(end-len(n.data)) > d.room {
				return fuse.Status(syscall.ENOSPC)
			}
			d.resize(n, end)
		}
		return fuse.OK
	})
}

func (d *disk) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	st := d.serve(opFsync, in.NodeId, func(n *node) fuse.Status {
		n.sync()
		return fuse.OK
	})
	if !st.Ok() && st != fuse.EINTR { // an interrupted fsync has dropped nothing
		d.mu.Lock()
		if n := d.nodes[in.NodeId]; n != nil {
			n.lost = true
		}
		d.mu.Unlock()
	}
	return st
}

func (d *disk) FsyncDir(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return d.serve(opFsyncDir, in.NodeId, func(n *node) fuse.Status {
		d.syncFolder(n)
		return fuse.OK
	})
}

func (d *disk) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return d.serve(opOpen, in.NodeId, func(*node) fuse.Status { return fuse.OK })
}

func (d *disk) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return d.serve(opReadDir, in.NodeId, func(dir *node) fuse.Status {
		names := sortedNames(dir.entries)
		for _, name := range names[min(int(in.Offset), len(names)):] {
			n := dir.entries[name]
			if !out.AddDirEntry(fuse.DirEntry{Name: name, Ino: n.id, Mode: n.mode}) {
				break
			}
		}
		return fuse.OK
	})
}

func (d *disk) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.OK }

func (d *disk) StatFs(_ <-chan struct{}, in *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	return d.serve(opStatFs, in.NodeId, func(*node) fuse.Status {
		const blocks = 1 << 20
		*out = fuse.StatfsOut{Blocks: blocks, Bfree: blocks, Bavail: blocks, Files: blocks, Ffree: blocks, Bsize: page, Frsize: page, NameLen: 255}
		return fuse.OK
	})
}
