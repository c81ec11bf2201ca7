package transform

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
)

// ordering is the search for the order of one index.
type ordering struct {
	*sketch
	course     *course
	workers    int
	magnitudes func() ([]float64, error)
}

// Labels of one tour. A tour takes time and memory as the square of its labels.
const (
	tourLabels  = 1024
	wholeLabels = 2048 // that are not worth cutting
)

// best is the order that toggles least on the wires, by any of the methods; nil where that is the source's.
// Where signs will be chosen, too, orders are compared with the signs that they get, and one is tried that
// counts on them.
func (o *ordering) best(ctx context.Context, args []string, joint bool) ([]int, error) {
	if !o.course.tied() {
		return nil, nil
	}
	least, err := o.toggles(ctx, o.course.pick(identity(o.labels)), joint)
	if err != nil {
		return nil, err
	}
	var order []int
	tried := []bool{false}
	if joint {
		tried = append(tried, true)
	}
	for _, signs := range tried {
		path, err := o.path(ctx, args, signs)
		if err != nil {
			return nil, err
		}
		sum, err := o.toggles(ctx, path, joint)
		if err != nil {
			return nil, err
		}
		if sum < least {
			least, order = sum, o.course.lay(path)
		}
	}
	return order, nil
}

// path strings the labels together by the method that args name.
func (o *ordering) path(ctx context.Context, args []string, joint bool) ([]int, error) {
	method, number := "tour", 0
	if len(args) > 0 {
		method = args[0]
	}
	if len(args) > 1 {
		number, _ = strconv.Atoi(args[1])
	}
	switch method {
	case "greedy":
		return o.nearestNeighbour(ctx, identity(o.labels), o.labels, joint)
	case "sort", "window":
		path, err := o.sorted()
		if err != nil || method == "sort" {
			return path, err
		}
		return o.nearestNeighbour(ctx, path, number, joint)
	}
	return o.tours(ctx, number, joint)
}

// sorted labels by magnitude.
func (o *ordering) sorted() ([]int, error) {
	magnitude, err := o.magnitudes()
	path := identity(o.labels)
	slices.SortStableFunc(path, func(a, b int) int { return cmp.Compare(magnitude[a], magnitude[b]) })
	return path, err
}

// nearestNeighbour walks from the first of candidates to the nearest of the next window unvisited
// ones, and so on. Ties go to the earlier candidate.
func (o *ordering) nearestNeighbour(ctx context.Context, candidates []int, window int, joint bool) ([]int, error) {
	next := make([]int, len(candidates)+1) // a list of unvisited places; 0 is its head
	for i := range next {
		next[i] = i + 1
	}
	far := o.distance(joint)
	path := append(make([]int, 0, len(candidates)), candidates[0])
	next[0] = 2
	for last := candidates[0]; len(path) < len(candidates); path = append(path, last) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		best, before := math.Inf(1), 0
		for i, seen := 0, 0; next[i] < len(next) && seen < window; i, seen = next[i], seen+1 {
			if d := far(last, candidates[next[i]-1]); d < best {
				best, before = d, i
			}
		}
		last = candidates[next[before]-1]
		next[before] = next[next[before]]
	}
	return path, nil
}

// tours cuts a space-filling curve into blocks of about size labels (0: as many as is quick), and finds a
// tour of each, with all distances within the block at hand.
func (o *ordering) tours(ctx context.Context, size int, joint bool) ([]int, error) {
	if size == 0 {
		if size = tourLabels; o.labels <= wholeLabels {
			size = o.labels
		}
	}
	size = min(size, o.labels)
	blocks := (o.labels + size - 1) / size
	path := identity(o.labels)
	if blocks > 1 {
		var err error
		if path, err = o.curve(ctx, joint, o.workers); err != nil {
			return nil, err
		}
	}
	for i := range blocks {
		from, to := i*o.labels/blocks, (i+1)*o.labels/blocks
		labels := path[from:to]
		t, err := o.newTour(ctx, labels, joint, o.workers)
		if err != nil {
			return nil, err
		}
		nodes, err := t.search(ctx, o.course.within(from, to), o.symmetric())
		if err != nil {
			return nil, err
		}
		labels = slices.Clone(labels)
		for i, node := range nodes {
			path[from+i] = labels[node]
		}
	}
	return path, nil
}

// toggles adds up what toggles on all wires along a path, with the signs that it gets where they may be
// chosen.
func (o *ordering) toggles(ctx context.Context, path []int, signs bool) (sum float64, err error) {
	crossings, err := o.crossings(ctx, o.course, path, o.workers)
	if err != nil {
		return 0, err
	}
	flip := make([]bool, o.labels)
	if signs {
		flip = crossings.signs(make([]bool, o.labels))
	}
	return crossings.sum(flip), nil
}
