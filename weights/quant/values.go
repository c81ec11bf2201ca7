package quant

import (
	"context"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Plain reports whether the weight is stored unquantised, in one tensor, although the config says that it is quantised.
func (w *Quantised) Plain() bool { return len(w.Tensors) == 1 && w.Tensors[0].Role == Values }

// HasActivationScale reports whether the checkpoint stores a scale for the weight's inputs.
func (w *Quantised) HasActivationScale() bool { return w.index(ActivationScale) >= 0 }

// Readable reports whether a tensor belongs to a weight whose values can be read.
func (d *Description) Readable(tensor string) bool {
	w, ok := d.WeightOf(tensor)
	return ok && w.CanRead() == nil
}

// WeightOf returns the quantised weight that a tensor belongs to; false if there is none.
func (d *Description) WeightOf(tensor string) (*Quantised, bool) {
	s, ok := d.find(tensor)
	return s.weight, ok && s.weight != nil
}

// Load is [Quantised.Read] under [weights.Guard].
func (w *Quantised) Load(expert int) (m *Matrix, err error) {
	err = weights.Guard(w.fileNames(), func() error {
		m, err = w.Read(expert)
		return err
	})
	return m, err
}

func (w *Quantised) fileNames() string { return strings.Join(w.Files(), " or ") }

// Files returns the paths of the files with the weight's tensors.
func (w *Quantised) Files() (names []string) {
	for _, t := range w.Tensors {
		if !slices.Contains(names, t.File) {
			names = append(names, t.File)
		}
	}
	return names
}

// Values returns all values of the weight in float32, expert by expert, row by row. workers is the number of goroutines;
// 0: all processors. The errors are those of [Quantised.Read] and ctx's.
func (w *Quantised) Values(ctx context.Context, workers int) ([]float32, error) {
	var all []float32
	for expert := range w.Experts() {
		m, err := w.Load(expert)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = make([]float32, w.Experts()*m.N*m.K)
		}
		values := all[expert*m.N*m.K:]
		const run = 16 // rows per goroutine
		err = parallel.Run(ctx, ceil(m.N, run), workers, func(_ context.Context, i int) error {
			for n := i * run; n < min(m.N, (i+1)*run); n++ {
				m.Row(values[n*m.K:(n+1)*m.K], n)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
