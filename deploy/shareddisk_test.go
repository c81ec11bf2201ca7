//go:build linux

package deploy

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	fuse "github.com/hanwen/go-fuse/v2/fs"
	kernel "github.com/hanwen/go-fuse/v2/fuse"
)

// sharedDisk is a file system like one that machines share. It shows a folder, without locks or with new names that appear
// late.
type sharedDisk struct {
	fuse.LoopbackNode
	*sharedState
}

type sharedState struct {
	locks syscall.Errno // of every lock; 0: the disk has locks
	late  bool

	mu     sync.Mutex
	hidden map[string]int // how often a new name is still looked up in vain
}

var (
	_ fuse.NodeWrapChilder = (*sharedDisk)(nil)
	_ fuse.NodeSetlker     = (*sharedDisk)(nil)
	_ fuse.NodeRenamer     = (*sharedDisk)(nil)
	_ fuse.NodeLookuper    = (*sharedDisk)(nil)
)

func (d *sharedDisk) WrapChild(context.Context, fuse.InodeEmbedder) fuse.InodeEmbedder {
	return &sharedDisk{fuse.LoopbackNode{RootData: d.RootData}, d.sharedState}
}

func (d *sharedDisk) Setlk(context.Context, fuse.FileHandle, uint64, *kernel.FileLock, uint32) syscall.Errno {
	return d.locks
}

func (d *sharedDisk) Rename(ctx context.Context, name string, to fuse.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	err := d.LoopbackNode.Rename(ctx, name, to, newName, flags)
	if err == 0 && d.late {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.hidden[filepath.Join(to.EmbeddedInode().Path(nil), newName)] = 2 // the kernel asks twice
	}
	return err
}

func (d *sharedDisk) Lookup(ctx context.Context, name string, out *kernel.EntryOut) (*fuse.Inode, syscall.Errno) {
	path := filepath.Join(d.EmbeddedInode().Path(nil), name)
	d.mu.Lock()
	left := d.hidden[path]
	d.hidden[path] = max(left-1, 0)
	d.mu.Unlock()
	if left > 0 {
		return nil, syscall.ENOENT
	}
	return d.LoopbackNode.Lookup(ctx, name, out)
}

// mountShared mounts the disk in a new folder, and returns the folder.
func mountShared(t *testing.T, s *sharedState) string {
	t.Helper()
	below, folder := t.TempDir(), t.TempDir()
	s.hidden = map[string]int{}
	root := &sharedDisk{fuse.LoopbackNode{RootData: &fuse.LoopbackRoot{Path: below}}, s}
	root.RootData.RootNode = root
	o := fuse.Options{MountOptions: kernel.MountOptions{DirectMountStrict: true, EnableLocks: s.locks != 0, FsName: "shared"}}
	server, err := fuse.Mount(folder, root, &o)
	if err != nil {
		t.Skip("FUSE is not possible here: ", err)
	}
	t.Cleanup(func() {
		syscall.Unmount(folder, syscall.MNT_DETACH)
		server.Wait()
	})
	return folder
}

// TestSharedDisk converts in parts on a disk without locks, where one part runs twice at the same time, and on a disk where
// the first lookup of a new name fails.
func TestSharedDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	dir := t.TempDir()
	program, model, whole := build(t, dir), filepath.Join(dir, "model"), filepath.Join(dir, "whole")
	command(t, program, "synth", "llama-tiny", model, "--shard-size", "20kB")
	command(t, program, "convert", model, whole, "--passes", "round=4")
	want := digests(t, whole)
	for name, s := range map[string]*sharedState{"ENOLCK": {locks: syscall.ENOLCK}, "ENOSYS": {locks: syscall.ENOSYS}, "late": {late: true}} {
		t.Run(name, func(t *testing.T) {
			disk := mountShared(t, s)
			plan, out := filepath.Join(disk, "plan.json"), filepath.Join(disk, "out")
			command(t, program, "plan", model, "-o", plan, "--passes", "round=4")
			convert := []string{"convert", model, out, "--plan", plan}
			twin := exec.Command(program, append(convert, "--part", "1/3")...)
			try(t, twin.Start())
			for _, part := range []string{"1/3", "2/3", "3/3"} {
				if s.locks == 0 {
					twin.Wait()
				}
				command(t, program, append(convert, "--part", part)...)
			}
			if err := twin.Wait(); s.locks != 0 && err != nil {
				t.Errorf("the part that ran twice: %v", err)
			}
			command(t, program, append(convert, "--finish")...)
			until(t, "the output is visible", func() bool { _, err := os.Stat(out); return err == nil })
			if have := digests(t, out); !maps.Equal(have, want) {
				t.Errorf("the output differs from that of a single run:\n%v\n%v", have, want)
			}
			if left, err := os.ReadDir(disk); err != nil || len(left) != 2 {
				t.Errorf("left on the disk: %v, %v", left, err)
			}
		})
	}
}
