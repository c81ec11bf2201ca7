package main

import (
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/recordfile"
)

// record is a sample of a group's mutants.
type record struct {
	Command     string    `json:"command"`
	Group       string    `json:"group"`
	Seed        uint64    `json:"seed"`
	Asked       int       `json:"asked"`
	Possible    int       `json:"possible"` // mutants of the group, with those that do not compile
	Mutants     []outcome `json:"mutants"`
	NotCompiled []mutant  `json:"not_compiled"`
}

// outcome is the result of the tests on a mutant.
type outcome struct {
	mutant
	Killed  bool    `json:"killed"`
	By      string  `json:"by,omitempty"` // the first test that failed
	Seconds float64 `json:"seconds"`
}

func (o outcome) String() string {
	if o.Killed {
		return fmt.Sprintf("killed    %3.0f s  %s\n                 by %s", o.Seconds, o.mutant, o.By)
	}
	return fmt.Sprintf("SURVIVED  %3.0f s  %s", o.Seconds, o.mutant)
}

// summary returns a sentence with the numbers of mutants.
func (r *record) summary() string {
	killed := 0
	for _, o := range r.Mutants {
		if o.Killed {
			killed++
		}
	}
	return fmt.Sprintf("%s: %d of %d mutants killed (of %d possible; seed %d)", r.Group, killed, len(r.Mutants), r.Possible, r.Seed)
}

// readRecord reads a record; a missing file gives an empty record.
func readRecord(path string) (*record, error) {
	r := new(record)
	return r, recordfile.Read(path, r)
}

// write replaces the file. Outcomes are in the order of the files, so that records can be compared.
func (r *record) write(path string) error {
	slices.SortStableFunc(r.Mutants, func(a, b outcome) int { return a.compare(b.mutant) })
	slices.SortStableFunc(r.NotCompiled, mutant.compare)
	return recordfile.Write(path, r)
}
