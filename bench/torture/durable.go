//go:build linux

package main

import (
	"bytes"
	"math/rand/v2"
	"slices"
)

// page is the unit in which a loss of power keeps or loses data.
const page = 4096

// entry is one name of a folder and the node that it leads to; nil for a name that is removed.
type entry struct {
	dir  *node
	name string
	node *node
}

// change is a change of one folder, or of two folders by a rename. It becomes durable as a whole or not at all.
type change struct {
	number  int
	entries []entry
}

// record notes a change that is not durable yet.
func (d *disk) record(entries ...entry) {
	d.changes++
	d.pending = append(d.pending, change{d.changes, entries})
}

// settle makes a change durable, except for entries that a later durable change has replaced.
func settle(c change) {
	for _, e := range c.entries {
		if e.dir.changed[e.name] > c.number {
			continue
		}
		e.dir.changed[e.name] = c.number
		if e.node == nil {
			delete(e.dir.stable, e.name)
		} else {
			e.dir.stable[e.name] = e.node
		}
	}
}

// syncFolder makes all changes of a folder durable.
func (d *disk) syncFolder(dir *node) {
	d.pending = slices.DeleteFunc(d.pending, func(c change) bool {
		touches := slices.ContainsFunc(c.entries, func(e entry) bool { return e.dir == dir })
		if touches {
			settle(c)
		}
		return touches
	})
}

// sync makes a file's data durable.
func (n *node) sync() {
	if !n.lost {
		n.durable, n.dirty = bytes.Clone(n.data), false
	}
}

// losePower discards data that is not durable. rng decides how much of it survives: nothing, everything up to some moment, or
// random changes and pages. All nodes get new ids, so that the kernel uses no cached contents.
func (d *disk) losePower(rng *rand.Rand) {
	d.mu.Lock()
	defer d.mu.Unlock()
	keep := func(int) bool { return false }
	switch rng.IntN(3) {
	case 1:
		upTo := rng.IntN(len(d.pending) + 1)
		keep = func(i int) bool { return i < upTo }
	case 2:
		keep = func(int) bool { return rng.IntN(2) == 0 }
	}
	for i, c := range d.pending {
		if keep(i) {
			settle(c)
		}
	}
	pages := rng.IntN(3) // none, some, or all of the pages that were not synced
	root := d.survivor(d.root, rng, pages)
	d.nodes = map[uint64]*node{}
	d.pending = nil
	d.root = root
	d.number(root)
}

// survivor returns a copy of a node with its durable contents.
func (d *disk) survivor(n *node, rng *rand.Rand, pages int) *node {
	s := &node{id: n.id, mode: n.mode, uid: n.uid, gid: n.gid, modified: n.modified}
	if n.isDir() {
		s.entries, s.stable, s.changed = map[string]*node{}, map[string]*node{}, map[string]int{}
		for _, name := range sortedNames(n.stable) {
			child := d.survivor(n.stable[name], rng, pages)
			s.entries[name], s.stable[name] = child, child
		}
		return s
	}
	s.data = n.durable
	if n.dirty && pages > 0 {
		s.data = mixed(n.durable, n.data, rng, pages == 2)
	}
	s.durable = bytes.Clone(s.data)
	return s
}

// mixed returns data with the size of one of old and now, and pages of both.
func mixed(old, now []byte, rng *rand.Rand, all bool) []byte {
	size := len(now)
	if !all && rng.IntN(2) == 0 {
		size = len(old)
	}
	out := make([]byte, size)
	copy(out, old)
	for at := 0; at < min(size, len(now)); at += page {
		if end := min(at+page, size, len(now)); all || rng.IntN(2) == 0 {
			copy(out[at:end], now[at:end])
		}
	}
	return out
}
