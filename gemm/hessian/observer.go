package hessian

import (
	"context"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// observer adds up statistics during a forward pass, and writes an input's statistics after its last token.
type observer struct {
	ctx     context.Context // context of the pass, which forward.Observer does not get
	dir     string
	key     string
	tokens  int
	workers int
	done    map[string]*indexed // by the names of the layers
	open    map[string]*sum     // by the first layer's name
}

// sum is the statistics of an input so far.
type sum struct {
	names     []string // names of the layers that read the input
	hessian   *triangle
	tokens    int
	low, high float32
}

func newSum(names []string, width int) *sum {
	return &sum{slices.Clone(names), newTriangle(width), 0, float32(math.Inf(1)), float32(math.Inf(-1))}
}

// Input adds a batch; see forward.Observer.
func (o *observer) Input(names []string, x sgemm.Matrix) error {
	first := names[0]
	if o.done[first] != nil {
		return nil
	}
	s := o.open[first]
	if s == nil {
		s = newSum(names, x.Cols)
		o.open[first] = s
	}
	low, high := extremes(x, o.workers)
	if !finite(low) || !finite(high) {
		return notFinite(first)
	}
	if err := s.hessian.add(o.ctx, x, o.workers); err != nil {
		return err
	}
	s.tokens += x.Rows
	s.low, s.high = min(s.low, low), max(s.high, high)
	if s.tokens < o.tokens {
		return nil
	}
	delete(o.open, first)
	return o.write(s)
}

func notFinite(layer string) error {
	return fmt.Errorf("the inputs of %q are not finite: look for NaN, infinite or very large weights in earlier layers", layer)
}

// Done writes the sum of an expert's input; see forward.ExpertObserver.
func (o *observer) Done(names []string) error {
	s := o.open[names[0]]
	if s == nil {
		return nil
	}
	delete(o.open, names[0])
	return o.write(s)
}

// close writes the sums that are still open at the end of a block: sums of experts without tokens in the last batch.
func (o *observer) close() error {
	for _, first := range slices.Sorted(maps.Keys(o.open)) {
		if err := o.write(o.open[first]); err != nil {
			return err
		}
	}
	clear(o.open)
	return nil
}

// write writes the file of an input.
func (o *observer) write(s *sum) error {
	width, tokens := s.hessian.width, float64(s.tokens)
	row := make([]float32, width)
	return o.writeFile(s, width, s.hessian.trace()/tokens/float64(width), func(i int) []float32 {
		row := row[i:]
		for j, v := range s.hessian.row(i) {
			row[j] = float32(v / tokens)
		}
		return row
	})
}

// writeFile writes the file of an input from the rows of its upper triangle. It does not use the Hessian of s.
func (o *observer) writeFile(s *sum, width int, meanSquare float64, row func(i int) []float32) error {
	if !finite(meanSquare) { // no element of H is larger than the largest on its diagonal
		return fmt.Errorf("the inputs of %q reach a magnitude of %g, whose square exceeds float32: look for very large weights in earlier layers",
			s.names[0], max(-s.low, s.high))
	}
	in := &indexed{fileName(s.names[0]), input{s.names, width, s.tokens, Range{float64(s.low), float64(s.high), math.Sqrt(meanSquare)}}}
	if err := writeTriangle(o.ctx, filepath.Join(o.dir, in.File), header{fileFormat, o.key, in.input}, row); err != nil {
		return err
	}
	for _, name := range s.names {
		o.done[name] = in
	}
	return nil
}
