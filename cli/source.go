package cli

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// source is where the values of an operand come from: random draws (a constant is drawn with no
// deviation), or tensors of a file.
type source struct {
	text        string
	mean, sigma float64
	path        string // of the model; "" for draws
	tensors     string // a name, a pattern, or "" for all linear layers
}

// errNoSuchFile is about the world, not the command line.
var errNoSuchFile = errors.New("there is no such file or folder")

// parseSource reads normal(MEAN,SIGMA), const(VALUE), zeros, or PATH:TENSOR.
func parseSource(text string) (source, error) {
	s := source{text: text}
	name, inner, called := strings.Cut(strings.TrimSuffix(text, ")"), "(")
	called = called && strings.HasSuffix(text, ")")
	switch {
	case text == "zeros":
		return s, nil
	case called && name == "normal":
		v, err := numbers(inner, 2)
		if err == nil && v[1] < 0 {
			err = fmt.Errorf("a negative deviation")
		}
		if err != nil {
			return s, fmt.Errorf("%s: %w; write it as normal(MEAN,SIGMA)", text, err)
		}
		s.mean, s.sigma = v[0], v[1]
		return s, nil
	case called && name == "const":
		v, err := numbers(inner, 1)
		if err != nil {
			return s, fmt.Errorf("%s: %w; write it as const(VALUE)", text, err)
		}
		s.mean = v[0]
		return s, nil
	}
	// A colon may belong to the path: the first one behind something that exists counts.
	for i, c := range text {
		if c != ':' {
			continue
		}
		if _, err := os.Stat(text[:i]); err == nil {
			s.path, s.tensors = text[:i], text[i+1:]
			if _, err := path.Match(s.tensors, ""); err != nil {
				return s, fmt.Errorf("%s: %q is no pattern: [ begins a set of characters and ] must end it", text, s.tensors)
			}
			return s, nil
		}
	}
	if file, _, tensor := strings.Cut(text, ":"); tensor && file != "" {
		return s, fmt.Errorf("%s: %w", file, errNoSuchFile)
	}
	if _, err := os.Stat(text); err == nil {
		return s, fmt.Errorf("%s: which tensor? write %s:NAME, or %s: for all its linear layers", text, text, text)
	}
	return s, fmt.Errorf("%q is neither normal(MEAN,SIGMA), const(VALUE) nor zeros, nor a tensor as in MODEL:NAME (MODEL: alone means all its linear layers)", text)
}

// numbers reads n finite numbers with commas between them.
func numbers(text string, n int) ([]float64, error) {
	parts := strings.Split(text, ",")
	if len(parts) != n {
		return nil, fmt.Errorf("%s, not %d", plural(len(parts), "number", "numbers"), n)
	}
	var list []float64
	for _, p := range parts {
		v, err := strconv.ParseFloat(strings.TrimSpace(p), 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%q is not a number", p)
		}
		list = append(list, v)
	}
	return list, nil
}
