package pass

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/transform/order"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// reorderName avoids an initialisation cycle of Reorder.
const reorderName = "reorder"

// Reorder permutes the labels of an index. The data of a step is the order: place i takes label order[i].
var Reorder = &Pass{
	Name: reorderName, Class: Exact, NeedsFamily: true,
	Usage: "reorder[=given/FILE]",
	Doc: "Permutes the labels of an index (FFN neurons, KV heads, V/O channels, the residual stream). In the new " +
		"order, consecutive values in a multiplier or on a memory wire differ in fewer bits. In the multipliers, four " +
		"consecutive rows of a streaming operand follow one another. In memory, elements 64 bytes apart follow one " +
		"another in prefill, and elements 2 or 32 bytes apart in decode. The pass compares the bits after the lossy " +
		"passes that have arguments. The order is a nearest-neighbour path, improved by 2-opt. More than 2048 labels " +
		"are ordered in blocks of 1024. If the pass signs runs too, reorder also tries a second order. There, the " +
		"distance of two labels is the smaller of their distances with equal and with opposite signs. The source's " +
		"order stays if no other order toggles fewer bits. With given/FILE, the pass applies the orders in a JSON " +
		"object without this comparison. The object maps names of indices to permutations. Reordering saves no " +
		"measurable energy: one permutation must serve every column, and trained rows are almost never similar " +
		"(docs/ordering.md).",
	Args: func(args []string) error {
		switch {
		case args[0] == "given" && len(args) > 1, args[0] == "tour" && len(args) == 1:
			return nil
		case slices.Contains([]string{"greedy", "window", "sort", "tour"}, args[0]):
			return fmt.Errorf("%s is no longer an argument, because the default order saves as much: leave the argument out", strings.Join(args, "/"))
		}
		return fmt.Errorf("%q is not an argument of this pass", strings.Join(args, "/"))
	},
	Plan: planReorder,
	Symmetry: func(s *plan.Step, n int, sym *program.Symmetry) error {
		labels, err := plan.Data[[]int](s, "order")
		switch {
		case err != nil:
			return err
		case sym.Perm != nil:
			return errors.New("the index is reordered twice")
		case !program.IsPermutation(labels, n):
			return fmt.Errorf("its order is not a permutation of %d labels", n)
		}
		sym.Perm = slices.Clone(labels)
		return nil
	},
}

func planReorder(ctx context.Context, m *Model, args []string) ([]*plan.Step, error) {
	if len(args) > 0 && args[0] == "given" {
		return m.givenOrders(ctx, strings.Join(args[1:], "/")) // slashes in the path were split as arguments
	}
	signs := slices.ContainsFunc(m.Choices, func(c Choice) bool { return c.Pass.Name == signsName })
	views := m.previews()
	var large sync.Mutex // one large sketch at a time
	return m.eachIndex(ctx, reorderName, false, sketches, func(ix *arch.Index) bool { return ix.Permute }, func(ctx context.Context, ix *arch.Index) ([]*plan.Step, error) {
		uses, err := m.lagged(ctx, ix)
		if err != nil || len(uses) == 0 || ix.Len < 3 {
			return nil, err
		}
		bytes, alone := m.sketchBytes(uses)
		if alone {
			large.Lock()
			defer large.Unlock()
		}
		shown, err := views.show(ctx, uses)
		if err != nil {
			return nil, err
		}
		sketch, err := order.NewSketch(ctx, shown, order.SketchOptions{Labels: ix.Len, MaxBytes: bytes, Signs: signs && ix.Sign, Workers: m.Workers})
		if err != nil {
			return nil, err
		}
		labels, err := sketch.Order(ctx, signs && ix.Sign, m.Workers)
		if err != nil || labels == nil {
			return nil, err
		}
		return []*plan.Step{{Index: ix.Name, Data: labels}}, nil
	})
}

// givenOrders reads the permutations in a file.
func (m *Model) givenOrders(ctx context.Context, path string) ([]*plan.Step, error) {
	js, err := bounded.ReadFile(path, bounded.Plan)
	if err != nil {
		return nil, err
	}
	given := map[string][]int{}
	if err := json.Unmarshal(js, &given); err != nil {
		return nil, fmt.Errorf("%s: is not a JSON object with a permutation for each index: %w", path, err)
	}
	for name := range given {
		switch ix := m.Layout.Index(name); {
		case ix == nil:
			return nil, fmt.Errorf("%s: the model has no index %q: remove this index from the file", path, name)
		case ix.Blocked != "":
			return nil, fmt.Errorf("%s: index %s cannot change: %s: remove this index from the file", path, name, ix.Blocked)
		case !ix.Permute:
			return nil, fmt.Errorf("%s: index %s may not be permuted: remove this index from the file", path, name)
		case !program.IsPermutation(given[name], ix.Len):
			return nil, fmt.Errorf("%s: index %s: the order is not a permutation of the numbers from 0 to %d", path, name, ix.Len-1)
		}
	}
	var steps []*plan.Step
	for _, ix := range m.Layout.Indices {
		labels := given[ix.Name]
		if labels == nil {
			continue
		}
		if reason := m.unfit(ix, false); reason != "" {
			m.Note("%s: index %s is not changed: %s", reorderName, ix.Name, reason)
			continue
		}
		step, err := m.givenStep(ctx, ix, labels)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		steps = append(steps, step)
	}
	return steps, nil
}
