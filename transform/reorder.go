package transform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/lowtoggle/lowtoggle/weights/arch"
)

var reorderPass = &Pass{
	Name: "reorder", Class: Exact, NeedsFamily: true,
	Usage: "reorder[=tour[/BLOCK]|greedy|window/W|sort|given/FILE]",
	Doc: "Permutes the labels of an index (FFN neurons, KV heads, V/O channels, the residual stream) so " +
		"that those which follow one another on the card's wires differ in few bits: rows of a streaming operand in " +
		"runs of four, elements 64 bytes apart in memory, in decode 2 and 32. Bits are compared as the " +
		"lossy passes with arguments will leave them, and where signs are asked for, too, with the better of both signs. " +
		"tour walks to the nearest unvisited neighbour, then reverses, moves and exchanges labels while that helps; " +
		"of more than 2048 labels it takes blocks (of 1024 unless BLOCK says otherwise) along a space-filling curve. " +
		"greedy is the walk alone, among all labels, whose time grows as their square; window looks only at the next W in order of magnitude; sort orders " +
		"by magnitude; given takes a JSON object from index to permutation. Without an argument: tour. " +
		"An order that toggles no less than the source's is not taken. " +
		"One permutation must serve every column, and thousands of columns are hardly ever alike: it saves " +
		"next to nothing, even on coarse weights.",
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

// mostBlock bounds the distances of a tour's block: 256 MB for each group of wires.
const mostBlock = 8192

func checkReorder(args []string) error {
	switch args[0] {
	case "greedy", "sort":
		if len(args) == 1 {
			return nil
		}
	case "tour", "window":
		if args[0] == "tour" && len(args) == 1 {
			return nil
		}
		if len(args) == 2 {
			w, err := strconv.Atoi(args[1])
			if err == nil && w > mostBlock && args[0] == "tour" {
				return fmt.Errorf("a block of %d labels would keep %d² distances in memory: take at most %d", w, w, mostBlock)
			}
			if err == nil && w > 0 {
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
	joint := slices.ContainsFunc(p.opt.Passes, func(c Choice) bool { return c.Pass == signsPass })
	views := newPreviews(p)
	var large sync.Mutex // one large sketch at a time
	return p.eachIndex(ctx, permutable, func(p *planner, ix *arch.Index) ([]*Step, error) {
		uses, err := p.following(ix)
		if err != nil || len(uses) == 0 || ix.Len < 3 {
			return nil, err
		}
		limit := p.sketchBytes(uses)
		if limit.large {
			large.Lock()
			defer large.Unlock()
		}
		s, err := newSketch(ctx, uses, sketchOptions{labels: ix.Len, maxBytes: limit.bytes,
			signs: joint && ix.Sign, workers: p.opt.Workers, view: views.of})
		if err != nil {
			return nil, err
		}
		o := &ordering{sketch: s, course: newCourse(ix.Len, s.groups, s.heavy), workers: p.opt.Workers,
			magnitudes: func() ([]float64, error) { return magnitudes(ctx, uses, ix.Len) }}
		order, err := o.best(ctx, args, joint && ix.Sign)
		if err != nil || order == nil {
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
	for _, ix := range p.layout.Indices {
		if given[ix.Name] != nil && ix.Blocked != "" {
			return fmt.Errorf("%s: index %s must stay as it is: %s", path, ix.Name, ix.Blocked)
		}
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
			key[label] += pull(u.follow) * sum[label] / max(1, count[label])
		}
	}
	return key, nil
}
