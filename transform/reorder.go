package transform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"

	"github.com/lowtoggle/lowtoggle/weights/arch"
)

var reorderPass = &Pass{
	Name: "reorder", Class: Exact, NeedsFamily: true,
	Usage: "reorder[=greedy|window/W|sort|given/FILE]",
	Doc: "Permutes the labels of an index (FFN neurons, KV heads, V/O channels, the residual stream) so " +
		"that neighbours differ in few bits. greedy walks to the nearest unvisited neighbour by Hamming " +
		"distance; window looks only at the next W in order of magnitude, for large indices; sort orders " +
		"by magnitude; given takes a JSON object from index to permutation. Without an argument: greedy " +
		"where that is quick, else window. An order that toggles no less than the source's is not taken. " +
		"One permutation must serve every column, and low mantissa bits are noise to it: on " +
		"full-precision weights it saves next to nothing.",
	check: checkReorder,
	plan:  planReorder,
	merge: func(s *Step, sym *Symmetry, n int) error {
		if sym.Perm != nil {
			return errors.New("the index is reordered twice")
		}
		if !isPermutation(s.Order, n) {
			return fmt.Errorf("its order is no permutation of %d labels", n)
		}
		sym.Perm = slices.Clone(s.Order)
		return nil
	},
}

func checkReorder(args []string) error {
	switch args[0] {
	case "greedy", "sort":
		if len(args) == 1 {
			return nil
		}
	case "window":
		if len(args) == 2 {
			if w, err := strconv.Atoi(args[1]); err == nil && w > 0 {
				return nil
			}
		}
	case "given":
		if len(args) > 1 {
			return nil
		}
	}
	return fmt.Errorf("%q is no way to order", args)
}

func planReorder(ctx context.Context, p *planner, args []string) error {
	permutable := func(ix *arch.Index) bool { return ix.Permute }
	if len(args) > 0 && args[0] == "given" {
		return planGiven(ctx, p, joinPath(args[1:]))
	}
	return p.eachIndex(ctx, permutable, func(p *planner, ix *arch.Index) ([]*Step, error) {
		uses := p.active(ix)
		if len(uses) == 0 || ix.Len < 3 {
			return nil, nil
		}
		sketch, err := p.sketch(ix, uses, p.lastingBits)
		if err != nil {
			return nil, err
		}
		magnitude, err := magnitudes(ctx, uses, ix.Len)
		if err != nil {
			return nil, err
		}
		order, err := chooseOrder(ctx, sketch, magnitude, args)
		if err != nil || sketch.path(order) >= sketch.path(identity(ix.Len)) {
			return nil, err
		}
		return []*Step{{Index: ix.Name, Order: order}}, nil
	})
}

// joinPath restores a path that was split at its slashes with the arguments.
func joinPath(parts []string) string {
	path := parts[0]
	for _, p := range parts[1:] {
		path += "/" + p
	}
	return path
}

// planGiven takes the permutations that a file gives.
func planGiven(ctx context.Context, p *planner, path string) error {
	js, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	given := map[string][]int{}
	if err := json.Unmarshal(js, &given); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	err = p.eachIndex(ctx, func(ix *arch.Index) bool { return given[ix.Name] != nil },
		func(p *planner, ix *arch.Index) ([]*Step, error) {
			order := given[ix.Name]
			if !ix.Permute || !isPermutation(order, ix.Len) {
				return nil, fmt.Errorf("%s: index %s: no permutation of its %d labels, or it may not be permuted", path, ix.Name, ix.Len)
			}
			return []*Step{{Index: ix.Name, Order: order}}, nil
		})
	for _, ix := range p.layout.Indices {
		delete(given, ix.Name)
	}
	for name := range given {
		return fmt.Errorf("%s: the model has no index %q", path, name)
	}
	return err
}

// orderWork bounds the bytes that are compared to order one index: some ten seconds.
const orderWork = 48 << 30

func chooseOrder(ctx context.Context, s *sketch, magnitude []float64, args []string) ([]int, error) {
	byMagnitude := identity(s.labels)
	slices.SortStableFunc(byMagnitude, func(a, b int) int {
		switch {
		case magnitude[a] < magnitude[b]:
			return -1
		case magnitude[a] > magnitude[b]:
			return 1
		}
		return 0
	})
	method, window := "greedy", s.labels
	if len(args) > 0 {
		method = args[0]
	} else if work := s.labels * s.labels / 2 * s.words * 8; work > orderWork {
		method, window = "window", max(16, orderWork/(s.labels*s.words*8))
	}
	switch method {
	case "sort":
		return byMagnitude, nil
	case "window":
		if len(args) > 1 {
			window, _ = strconv.Atoi(args[1])
		}
		return nearestNeighbour(ctx, s, byMagnitude, window)
	}
	return nearestNeighbour(ctx, s, identity(s.labels), s.labels)
}

// nearestNeighbour walks from the first of candidates to the nearest of the next window unvisited
// ones, and so on. Ties go to the earlier candidate.
func nearestNeighbour(ctx context.Context, s *sketch, candidates []int, window int) ([]int, error) {
	next := make([]int, len(candidates)+1) // a list of unvisited places; 0 is its head
	for i := range next {
		next[i] = i + 1
	}
	order := append(make([]int, 0, len(candidates)), candidates[0])
	next[0] = 2
	for last := candidates[0]; len(order) < len(candidates); order = append(order, last) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		best, before := math.Inf(1), 0
		for i, seen := 0, 0; next[i] < len(next) && seen < window; i, seen = next[i], seen+1 {
			if d := s.distanceBelow(last, candidates[next[i]-1], best); d < best {
				best, before = d, i
			}
		}
		last = candidates[next[before]-1]
		next[before] = next[next[before]]
	}
	return order, nil
}

func identity(n int) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	return p
}

// magnitudes is a key to sort labels by: the mean of their values' exponent and mantissa bits read
// as one number, which grows like the logarithm.
func magnitudes(ctx context.Context, uses []*use, n int) ([]float64, error) {
	key := make([]float64, n)
	for _, u := range uses {
		sum, count := make([]float64, n), make([]float64, n)
		err := u.each(ctx, func(label int, b uint32, _ int) {
			sum[label] += float64(b &^ u.format.SignMask())
			count[label]++
		})
		if err != nil {
			return nil, err
		}
		for label := range key {
			key[label] += u.weight * sum[label] / max(1, count[label])
		}
	}
	return key, nil
}
