package transform

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/lowtoggle/lowtoggle/transform/rounding"
)

// Prune is what prune does to a tensor.
type Prune struct {
	// Inputs and Outputs whose weights are all zeroed: positions of the source, the inputs in the
	// order in which their error is handed on to the others.
	Inputs  []int `json:"inputs,omitempty"`
	Outputs []int `json:"outputs,omitempty"`
}

var prunePass = &Pass{
	Name: "prune", Class: Lossy, NeedsFamily: true, NeedsInputs: true, UsesInputs: true,
	Usage: "prune=SHARE",
	Doc: "Zeroes whole inputs of a layer: the given share of them, those that the others can best stand " +
		"in for on the inputs that the layer really gets, and changes the others' weights to do so. Early layers see " +
		"few directions: in the first of a byte-level model half of the inputs are free. Neurons whose " +
		"outputs nobody reads any more lose their weights, too. A line of zeros saves more than any rounding " +
		"of it can, but few lines are free in later layers: name a share only to experiment, and let " +
		"--max-loss choose it.",
	check: func(args []string) error {
		if s, err := strconv.ParseFloat(args[0], 64); err != nil || !(s > 0 && s < 1) {
			return fmt.Errorf("%q is no share between 0 and 1", args[0])
		}
		if len(args) > 1 {
			return errors.New("too many arguments")
		}
		return nil
	},
	candidates: func(t *target, args []string) ([]*Step, error) {
		if len(args) == 0 {
			return nil, nil // a share is chosen by the search for a budget of loss
		}
		share, _ := strconv.ParseFloat(args[0], 64)
		l, err := t.fitted()
		if err != nil {
			return nil, err
		}
		pruning, err := rounding.Prune(t.p.ctx, l.w, l.h, rounding.PruneOptions{Workers: 1})
		if err != nil {
			return nil, err
		}
		n := int(math.Round(share * float64(len(pruning.Order))))
		if n == 0 {
			return nil, nil
		}
		return []*Step{{Prune: &Prune{Inputs: l.positions(pruning.Order[:n])}}}, nil
	},
	compile: func(s *Step, c *compiler) error {
		if s.Prune == nil || len(s.Prune.Inputs)+len(s.Prune.Outputs) == 0 {
			return errors.New("does not say what to zero")
		}
		p := c.prog
		in, k := p.inputAxis()
		if _, err := in.places(k, s.Prune.Inputs); err != nil {
			return fmt.Errorf("inputs: %w", err)
		}
		out, n := p.outputAxis()
		_, err := out.places(n, s.Prune.Outputs)
		if err != nil {
			err = fmt.Errorf("outputs: %w", err)
		}
		return err
	},
}
