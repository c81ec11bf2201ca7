package pass

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
)

// Pruned is the data of a step of [Prune].
type Pruned struct {
	// Inputs and Outputs are the source positions whose weights are all zeroed. Inputs are in the order of zeroing.
	Inputs  []int `json:"inputs,omitempty"`
	Outputs []int `json:"outputs,omitempty"`
}

// pruneName avoids an initialisation cycle of Prune.
const pruneName = "prune"

// Prune zeroes whole inputs of layers.
var Prune = &Pass{
	Name: pruneName, Class: Lossy, NeedsFamily: true, NeedsHessians: true, UsesHessians: true, SearchOnly: true, Joint: true, Companion: true,
	Usage: "prune=SHARE",
	Doc: "Zeroes the given share of a layer's inputs. The pass prunes the inputs that the layer's other inputs predict " +
		"best, as measured on real activations. To compensate, the pass changes the weights of the other inputs. Inputs " +
		"of early layers are the most predictable. If no layer reads the output of a neuron, the weights of the neuron " +
		"are zeroed too. A row or column of zeros saves more energy than any rounding of its values. In later layers, " +
		"few inputs can be pruned. Give a share for experiments only; otherwise the search for --max-loss chooses the " +
		"share.",
	Args: func(args []string) error {
		if s, err := strconv.ParseFloat(args[0], 64); err != nil || !(s > 0 && s < 1) {
			return fmt.Errorf("%q is not a share between 0 and 1", args[0])
		}
		if len(args) > 1 {
			return errors.New("too many arguments")
		}
		return nil
	},
	Candidates: func(ctx context.Context, l *Layer, args []string) ([]any, error) {
		if len(args) == 0 {
			return nil, nil // the search for a budget of loss chooses the share
		}
		share, _ := strconv.ParseFloat(args[0], 64)
		m, err := l.Fitted(ctx)
		if err != nil {
			return nil, err
		}
		h, err := m.Hessian(ctx)
		if err != nil {
			return nil, err
		}
		pruning, err := rounding.Prune(ctx, m.Weights(), h, rounding.PruneOptions{Signal: m.Signal, Workers: 1})
		if err != nil {
			return nil, err
		}
		n := int(math.Round(share * float64(len(pruning.Order))))
		if n == 0 {
			return nil, nil
		}
		return []any{Pruned{Inputs: m.Positions(pruning.Order[:n])}}, nil
	},
	Tuned: func(ctx context.Context, l *Layer, damp float64) (func(float64) any, error) {
		if damp == 0 {
			return func(float64) any { return nil }, nil // the other inputs could not compensate
		}
		rates, err := l.Rates(ctx)
		if err != nil {
			return nil, err
		}
		m, err := l.Fitted(ctx)
		if err != nil {
			return nil, err
		}
		h, err := m.Hessian(ctx)
		if err != nil {
			return nil, err
		}
		pruning, err := rounding.Prune(ctx, m.Weights(), h, rounding.PruneOptions{Damp: damp, Signal: m.Signal, Workers: 1})
		if err != nil {
			return nil, err
		}
		saved := max(0, rates.Significant[1]-rates.Line) * (float64(m.Rows) + l.Freed)
		return func(lambda float64) any {
			n := pruning.Best(lambda * saved)
			if n == 0 || n == m.Cols {
				return nil
			}
			return Pruned{Inputs: m.Positions(pruning.Order[:n])}
		}, nil
	},
	Compile: func(s *plan.Step, c *program.Context) (o program.Operation, err error) {
		d, err := plan.Data[Pruned](s)
		if err != nil {
			return o, err
		}
		if len(d.Inputs)+len(d.Outputs) == 0 {
			return o, errors.New("names no inputs and no outputs to zero")
		}
		in, k := c.Program.InputAxis()
		if _, err := in.Places(k, d.Inputs); err != nil {
			return o, fmt.Errorf("inputs: %w", err)
		}
		out, n := c.Program.OutputAxis()
		if _, err := out.Places(n, d.Outputs); err != nil {
			return o, fmt.Errorf("outputs: %w", err)
		}
		return program.Operation{Joint: true, ZeroInputs: d.Inputs, ZeroOutputs: d.Outputs}, nil
	},
	Complete: zeroUnreadOutputs,
	Describe: func(s *plan.Step) string {
		d, _ := plan.Data[Pruned](s)
		if len(d.Inputs) == 0 {
			return "unread outputs"
		}
		return "prune"
	},
}
