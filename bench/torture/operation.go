//go:build linux

package main

import "strings"

// operation is a kind of operation on the disk.
type operation int

const (
	opLookup operation = iota
	opGetAttr
	opReadDir
	opOpen
	opRead
	opStatFs
	firstChange // from here on, operations change the disk or its durable contents
)

const (
	opCreate operation = firstChange + iota
	opWrite
	opResize
	opSetAttr
	opFsync
	opFsyncDir
	opRename
	opUnlink
	opMkdir
	opRmdir
	operations
)

var operationNames = [operations]string{
	opLookup: "lookup", opGetAttr: "getattr", opReadDir: "readdir", opOpen: "open", opRead: "read", opStatFs: "statfs",
	opCreate: "create", opWrite: "write", opResize: "resize", opSetAttr: "setattr", opFsync: "fsync", opFsyncDir: "fsyncdir",
	opRename: "rename", opUnlink: "unlink", opMkdir: "mkdir", opRmdir: "rmdir",
}

func (o operation) String() string { return operationNames[o] }

// MarshalText and UnmarshalText let records and the flag -fault name operations.
func (o operation) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

func (o *operation) UnmarshalText(text []byte) error {
	for i, name := range operationNames {
		if name == string(text) {
			*o = operation(i)
			return nil
		}
	}
	return errorf("%s: no operation: choose one of %s", text, strings.Join(operationNames[:], ", "))
}

// tally counts the operations of one run.
type tally struct {
	each    [operations]int
	changes int
	all     int
}

func (t *tally) add(o operation) {
	t.each[o]++
	t.all++
	if o >= firstChange {
		t.changes++
	}
}
