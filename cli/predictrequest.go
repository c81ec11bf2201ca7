package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights"
)

// productModel predicts products.
type productModel interface {
	Predict(ctx context.Context, p cost.Product, x, w cost.Operand) (cost.Prediction, error)
}

// forecast is what predict is asked for.
type forecast struct {
	operands
	model    productModel
	sources  []source
	compared bool          // the first source is --w, and the others are set against it
	m        int           // tokens; 0: as many as x has, or defaultTokens
	shape    *gemm.Problem // where no source is of a file
	cold     bool          // weights are read from memory
	layers   bool          // a row for every layer, too
}

func readForecast(c *cli.Context) (*forecast, error) {
	f := &forecast{operands: operands{seed: c.Uint64("seed"), models: map[string]*weights.Model{}}, layers: c.Bool("layers")}
	var err error
	if f.role, err = cost.ParseRole(c.String("role")); err != nil {
		return nil, usageError{fmt.Errorf("--role: %w", err)}
	}
	if f.family, err = family(c); err != nil {
		return nil, err
	}
	if c.IsSet("dtype") {
		if f.dtype, err = gemm.ParseType(strings.ToLower(c.String("dtype"))); err != nil {
			return nil, usageError{fmt.Errorf("--dtype: %w", err)}
		}
	}
	if err := readSource(c, "x", &f.x); err != nil {
		return nil, err
	}
	if err := f.readSources(c); err != nil {
		return nil, err
	}
	decode := false
	switch phase := c.String("workload"); phase {
	case "prefill":
	case "decode":
		decode = true
	default:
		return nil, usagef("--workload %s: one product is predicted: give prefill or decode", phase)
	}
	f.cold = decode || c.Bool("cold")
	return f, f.readShape(c.String("shape"), decode)
}

// readSources reads --w, every --against and the arguments, in this order; with none of them it is
// the usual weights.
func (f *forecast) readSources(c *cli.Context) error {
	add := func(flag, text string) error {
		s, err := parseSource(text)
		switch {
		case err != nil && flag != "":
			return aboutFlag(flag, err)
		case errors.Is(err, errNoSuchFile):
			return err
		case err != nil:
			return usageError{err}
		case slices.ContainsFunc(f.sources, func(have source) bool { return have.text == text }):
			return usagef("%s is given twice", text)
		}
		f.sources = append(f.sources, s)
		return nil
	}
	if f.compared = c.IsSet("w"); f.compared {
		if err := add("w", c.String("w")); err != nil {
			return err
		}
	}
	for _, text := range c.StringSlice("against") {
		if err := add("against", text); err != nil {
			return err
		}
	}
	for _, text := range c.Args().Slice() {
		if err := add("", text); err != nil {
			return err
		}
	}
	if len(f.sources) == 0 {
		f.sources = []source{usualW(f.dtype)}
	}
	return nil
}

// readShape reads --shape as measure does; decoding has its own number of tokens.
func (f *forecast) readShape(text string, decode bool) error {
	file := f.reference() >= 0
	if decode && text == "" {
		text = fmt.Sprint(decodeTokens)
		if !file {
			text = fmt.Sprintf("%dx%dx%d", decodeTokens, defaultTokens, defaultTokens)
		}
	}
	q := request{operands: f.operands}
	if file { // which has N and K
		q.w.path = "a file"
	}
	err := q.readShape(text)
	f.m, f.shape = q.m, q.shape
	return err
}

// reference is the first source of a file, or, where there is none, the first pattern that begins with
// a tensor: the one with shapes of its own. -1 where all take those of --shape.
func (f *forecast) reference() int {
	if i := slices.IndexFunc(f.sources, func(s source) bool { return s.path != "" }); i >= 0 {
		return i
	}
	return slices.IndexFunc(f.sources, func(s source) bool {
		_, _, ok := s.pattern.Tensor()
		return ok
	})
}
