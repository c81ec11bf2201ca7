//go:build linux

package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// largestRequest bounds one read or write, so that a shard of a small model takes several.
const largestRequest = 16 << 10

// disk is a disk in memory. Processes access it through FUSE, without a cache of names; the trial's checks access it directly.
type disk struct {
	fuse.RawFileSystem
	folder string // mount point
	server *fuse.Server

	mu      sync.Mutex
	root    *node
	nodes   map[uint64]*node // by id; ids are never used twice, except the root's
	ids     uint64
	changes int
	pending []change // changes that are not durable yet, in order
	used    int64    // bytes written since the last reset

	injector
}

// mount makes an empty disk at a new folder below parent.
func mount(parent string) (*disk, error) {
	folder, err := os.MkdirTemp(parent, "disk")
	if err != nil {
		return nil, err
	}
	d := &disk{RawFileSystem: fuse.NewDefaultRawFileSystem(), folder: folder, ids: fuse.FUSE_ROOT_ID}
	d.reset(tree{})
	d.server, err = fuse.NewServer(d, folder, &fuse.MountOptions{
		DirectMountStrict: true, Name: "torture", FsName: "torture", DisableXAttrs: true, DisableReadDirPlus: true,
		MaxWrite: largestRequest, MaxReadAhead: largestRequest,
	})
	if err != nil {
		return nil, fmt.Errorf("mounting the disk in memory: %w", err)
	}
	go d.server.Serve()
	return d, errors.Join(d.server.WaitMount(), keepDevices())
}

// keepDevices keeps started programs from inheriting the open files of /dev/fuse. If this process were killed, a program with
// such a file would keep the disk mounted and wait for its answers forever.
func keepDevices() error {
	const list = "/proc/self/fd"
	entries, err := os.ReadDir(list)
	for _, e := range entries {
		fd, notNumber := strconv.Atoi(e.Name())
		if target, err := os.Readlink(path.Join(list, e.Name())); err == nil && notNumber == nil && target == "/dev/fuse" {
			syscall.CloseOnExec(fd)
		}
	}
	return err
}

// unmount ends the disk.
func (d *disk) unmount() {
	syscall.Unmount(d.folder, syscall.MNT_DETACH)
	d.server.Wait()
	os.Remove(d.folder)
}

// reset gives the disk new contents, which are durable, and no fault.
func (d *disk) reset(contents tree) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.nodes, d.pending, d.used, d.injector = map[uint64]*node{}, nil, 0, injector{}
	d.root = d.newNode(folderMode)
	d.root.id = fuse.FUSE_ROOT_ID
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		dir := d.root
		if parent := path.Dir(name); parent != "." {
			dir = d.at(parent)
		}
		f := contents[name]
		n := d.newNode(f.mode)
		if !n.isDir() {
			n.data, n.durable = []byte(f.data), []byte(f.data)
		}
		dir.entries[path.Base(name)], dir.stable[path.Base(name)] = n, n
	}
	d.number(d.root)
}

// newNode makes a node that has no name yet.
func (d *disk) newNode(mode uint32) *node {
	d.ids++
	n := &node{id: d.ids, mode: mode, modified: d.now()}
	if n.isDir() {
		n.entries, n.stable, n.changed = map[string]*node{}, map[string]*node{}, map[string]int{}
	}
	d.nodes[n.id] = n
	return n
}

// number gives new ids to all nodes except the root.
func (d *disk) number(n *node) {
	if n != d.root {
		d.ids++
		n.id = d.ids
	}
	d.nodes[n.id] = n
	for _, child := range n.entries {
		d.number(child)
	}
}

// at finds a node by its path.
func (d *disk) at(name string) *node {
	n := d.root
	for name != "" && n != nil {
		first, rest := name, ""
		for i := range name {
			if name[i] == '/' {
				first, rest = name[:i], name[i+1:]
				break
			}
		}
		n, name = n.entries[first], rest
	}
	return n
}

// contents returns everything that processes would see now.
func (d *disk) contents() tree {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := tree{}
	var walk func(n *node, name string)
	walk = func(n *node, name string) {
		for child, c := range n.entries {
			where := path.Join(name, child)
			t[where] = file{c.mode, string(c.data)}
			walk(c, where)
		}
	}
	walk(d.root, "")
	return t
}

// overwrite replaces a file's data durably, as another machine with access to the disk could.
func (d *disk) overwrite(name, data string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.at(name)
	n.data, n.durable, n.modified = []byte(data), []byte(data), d.now()
}

// clear removes a file or a folder durably.
func (d *disk) clear(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if dir := d.at(path.Dir(name)); dir != nil && dir.entries[path.Base(name)] != nil {
		delete(dir.entries, path.Base(name))
		d.record(entry{dir, path.Base(name), nil})
		d.syncFolder(dir)
	}
}

func (d *disk) now() time.Time { return time.Now().Add(d.clock) }

func sortedNames(m map[string]*node) []string { return slices.Sorted(maps.Keys(m)) }
