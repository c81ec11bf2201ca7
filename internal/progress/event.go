// Package progress holds the type with which all packages report their progress.
package progress

// Event reports the progress of a stage of the work.
type Event struct {
	Stage string // such as "plan" or "write"
	Done  int64  // steps done; some stages count bytes or elements
	Total int64  // number of steps; 0 if unknown
	// Number is the number of the stage, from 1, among Stages stages; 0 if unknown.
	Number, Stages int
}
