package main

import "github.com/lowtoggle/lowtoggle/internal/recordfile"

// record has the runs and the tallies of all targets.
type record struct {
	Runs    []run             `json:"runs"`
	Targets map[string]*tally `json:"targets"` // by package and name, such as weights.FuzzOpen
}

// run is one run of this command.
type run struct {
	Date       string  `json:"date"`
	Command    string  `json:"command"`
	Go         string  `json:"go"`
	Processors int     `json:"processors"`
	AtOnce     int     `json:"at_once"`
	Seconds    float64 `json:"seconds"`
}

// tally has the totals of one target over all runs.
type tally struct {
	Seconds    float64 `json:"seconds"`           // duration of the process, including the reading of its corpus
	Processor  float64 `json:"processor_seconds"` // processor time of its two processes
	Executions int64   `json:"executions"`
	New        int64   `json:"new_inputs"` // inputs that reached new code
	Crashes    []crash `json:"crashes,omitempty"`
}

// crash is a failure of a target.
type crash struct {
	Date   string `json:"date"`
	Output string `json:"output"`
	Input  string `json:"input,omitempty"` // as Go writes it to testdata/fuzz
}

// rate returns the executions per second of processor time, which depends little on other programs.
func (t *tally) rate() float64 {
	if t.Processor == 0 {
		return 0
	}
	return float64(t.Executions) / t.Processor
}

// readRecord reads a record; a missing file gives an empty record.
func readRecord(path string) (*record, error) {
	r := &record{Targets: map[string]*tally{}}
	return r, recordfile.Read(path, r)
}

// write replaces the file.
func (r *record) write(path string) error { return recordfile.Write(path, r) }
