//go:build linux

package main

import (
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// injector counts the operations of a run and injects its fault. The disk's lock guards it.
type injector struct {
	armed  bool // a program is running
	fault  fault
	count  tally
	pid    int  // process that is killed or signalled
	fired  bool // the fault has occurred
	frozen bool // the program is dead, and nothing may change

	clock  time.Duration
	room   int64       // bytes that may be written; 0: any number
	halve  bool        // this write is short
	unseen map[key]int // lookups that still miss a new name
}

type key struct {
	dir  *node
	name string
}

// arm starts counting for a fault of the process pid.
func (d *disk) arm(f fault, pid int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.injector = injector{armed: true, fault: f, pid: pid, clock: d.clock}
	if f.Kind == kindFull {
		d.used, d.room = 0, f.Amount
	}
}

// disarm ends counting, and returns the counts and whether the fault has occurred.
func (d *disk) disarm() (tally, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.armed, d.frozen, d.unseen, d.room = false, false, nil, 0
	return d.count, d.fired
}

// serve performs one operation on a node under the lock, unless the fault prevents it.
func (d *disk) serve(o operation, id uint64, do func(n *node) fuse.Status) fuse.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.armed {
		n, st := d.node(id)
		if !st.Ok() {
			return st
		}
		return do(n)
	}
	if d.frozen {
		return fuse.EIO
	}
	d.count.add(o)
	n, st := d.node(id)
	if !st.Ok() {
		return st
	}
	if errno := d.strike(o); errno != 0 {
		return fuse.Status(errno)
	}
	before := d.used
	st = do(n)
	d.halve = false
	if st == fuse.Status(syscall.ENOSPC) && d.room > 0 && d.used == before {
		d.fired = true
	}
	if d.fault.After && d.due(o) {
		d.end()
	}
	return st
}

// due reports whether this operation is the N-th change.
func (d *disk) due(o operation) bool { return o >= firstChange && d.count.changes == d.fault.N }

// end kills the process and freezes the disk.
func (d *disk) end() {
	d.fired, d.frozen = true, d.fault.Kind != kindSeveral
	syscall.Kill(d.pid, syscall.SIGKILL)
}

// strike injects the fault if it is due at this operation, and returns the error that replaces the operation, or 0.
func (d *disk) strike(o operation) syscall.Errno {
	f := d.fault
	switch f.Kind {
	case kindKill, kindPower, kindSeveral:
		if !f.After && d.due(o) {
			if d.end(); d.frozen {
				return syscall.EIO
			}
		}
	case kindSignal:
		if d.due(o) {
			d.fired = true
			syscall.Kill(d.pid, f.Signal)
		}
	case kindError:
		if o == *f.Op && (d.count.each[o] == f.N || f.Lasting && d.count.each[o] > f.N) {
			d.fired = true
			return f.Errno
		}
	case kindShort:
		if o == opWrite && d.count.each[o] == f.N {
			d.fired, d.halve = true, true
		}
	case kindVanish:
		if d.count.all >= f.N {
			d.fired = true
			return f.Errno
		}
	case kindSlow:
		if d.count.all >= f.N && d.count.all < f.N+20 {
			d.fired = true
			d.mu.Unlock()
			time.Sleep(2 * time.Millisecond)
			d.mu.Lock()
		}
	case kindClock:
		if o >= firstChange {
			d.fired = true
			d.clock = -d.clock + time.Duration(f.Amount)*time.Hour
		}
	}
	return 0
}

// shortened returns the part of the data that a write takes.
func (d *disk) shortened(data []byte) []byte {
	if d.halve && len(data) > 1 {
		return data[:len(data)/2]
	}
	return data
}

// hide makes the next lookups of a new name miss it, as on network disks.
func (d *disk) hide(dir *node, name string) {
	if d.armed && d.fault.Kind == kindLate {
		if d.unseen == nil {
			d.unseen = map[key]int{}
		}
		d.unseen[key{dir, name}] = int(d.fault.Amount)
	}
}

func (d *disk) hidden(dir *node, name string) bool {
	k := key{dir, name}
	if d.unseen[k] == 0 {
		return false
	}
	d.unseen[k]--
	d.fired = true
	return true
}
