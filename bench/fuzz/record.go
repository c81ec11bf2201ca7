package main

import "github.com/lowtoggle/lowtoggle/internal/recordfile"

// record is what all runs did.
type record struct {
	Runs    []run             `json:"runs"`
	Targets map[string]*tally `json:"targets"` // by package and name, such as weights.FuzzOpen
}

// run is one command.
type run struct {
	Date       string  `json:"date"`
	Command    string  `json:"command"`
	Go         string  `json:"go"`
	Processors int     `json:"processors"`
	AtOnce     int     `json:"at_once"`
	Seconds    float64 `json:"seconds"`
}

// tally is what one target did in all runs.
type tally struct {
	Seconds    float64 `json:"seconds"`           // of the process, with the reading of its corpus
	Processor  float64 `json:"processor_seconds"` // of its two processes; less where other programs use the processor
	Executions int64   `json:"executions"`
	New        int64   `json:"new_inputs"` // that reached new code
	Crashes    []crash `json:"crashes,omitempty"`
}

// crash is a failure of a target.
type crash struct {
	Date   string `json:"date"`
	Output string `json:"output"`
	Input  string `json:"input,omitempty"` // as Go writes it to testdata/fuzz
}

// rate returns the executions of a second of processor time, which other programs do not change much.
func (t *tally) rate() float64 {
	if t.Processor == 0 {
		return 0
	}
	return float64(t.Executions) / t.Processor
}

// readRecord reads a record; a file that is absent is an empty one.
func readRecord(path string) (*record, error) {
	r := &record{Targets: map[string]*tally{}}
	return r, recordfile.Read(path, r)
}

// write replaces the file.
func (r *record) write(path string) error { return recordfile.Write(path, r) }
