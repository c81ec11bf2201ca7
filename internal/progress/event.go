// Package progress holds the type with which all packages report their progress.
package progress

// Event reports the progress of a stage of the work.
type Event struct {
	Stage string // name of the stage: "plan", "write"
	Done  int64  // steps done; bytes or elements where the stage counts them
	Total int64  // steps in all; 0 if unknown
	// Number of the stage, from 1, among so many Stages; 0 if unknown.
	Number, Stages int
}
