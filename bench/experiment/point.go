package experiment

import (
	"errors"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/cost/pattern"
)

// Point is a pair of operands and its place in an experiment. Readings of equal points are combined.
type Point struct {
	Experiment string          `json:"experiment"`
	At         float64         `json:"at"` // place on the experiment's axis
	X          pattern.Pattern `json:"x"`
	W          pattern.Pattern `json:"w"`
	Seed       uint64          `json:"seed"`
}

// Name returns a name that is unique within a job: the experiment, the place on its axis, and the seed if it is above 1.
func (p Point) Name() string {
	name := fmt.Sprintf("%s at %v", p.Experiment, p.At)
	if p.Seed > 1 {
		name += fmt.Sprintf(", seed %d", p.Seed)
	}
	return name
}

// Null is the name of the null points' experiment.
const Null = "null"

// nulls is the number of null points in a job.
const nulls = 2

// Job is a series to measure: its points in the order of measurement, without the null points.
type Job struct {
	Setup    Setup
	Baseline Point
	Points   []Point
}

// Validate returns all errors of a job, joined; nil if it is valid.
func (w Job) Validate() error {
	wrong := []error{w.Setup.Validate()}
	fault := func(p Point, format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("setup %v: %s: %w", w.Setup, p.Name(), fmt.Errorf(format, args...)))
	}
	seen, none := map[string]bool{}, pattern.Pattern{}
	for _, p := range append([]Point{w.Baseline}, w.Points...) {
		switch {
		case math.IsNaN(p.At) || math.IsInf(p.At, 0):
			fault(p, "its place on the axis must be a finite number")
		case p.Experiment == "" || p.Experiment == Null:
			fault(p, "the name of its experiment is empty or %q, which is kept for null points: give it another name", Null)
		case seen[p.Name()]:
			fault(p, "two points have this name: give each its own place on the axis or its own seed")
		case p.X == none || p.W == none:
			fault(p, "both operands need a pattern")
		case w.Setup.Change == Weights && p.X != w.Baseline.X:
			fault(p, "x must be the baseline's, because only the weights change in this setup")
		}
		seen[p.Name()] = true
	}
	return errors.Join(wrong...)
}

// all returns the points of the job and its null points. One null point follows the first third of the points, and one the
// second third, so that an interrupted run also has a null point.
func (w Job) all() []Point {
	var list []Point
	for i := range nulls + 1 {
		list = append(list, w.Points[len(w.Points)*i/(nulls+1):len(w.Points)*(i+1)/(nulls+1)]...)
		if i < nulls {
			null := w.Baseline
			null.Experiment, null.At = Null, float64(i+1)
			list = append(list, null)
		}
	}
	return list
}
