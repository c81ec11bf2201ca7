// Package progress holds the one type in which all packages report how far they are.
package progress

// Event tells how far a stage of the work is.
type Event struct {
	Stage string // name of the stage: "plan", "write"
	Done  int64  // steps done; bytes or elements where the stage counts them
	Total int64  // steps in all; 0 where nobody knows yet
}
