package gemm

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// ErrNotFinite is the error for operands or results with NaNs or infinities.
var ErrNotFinite = errors.New("not finite")

// Finite returns an ErrNotFinite if m contains NaN or infinity. The error gives their numbers and the position of the
// first. A memory fault of a mapped file is also returned as an error.
func (m Matrix) Finite() error {
	f, n := m.format(), m.Rows*m.Cols
	parts := make([]specials, (n+finitePart-1)/finitePart)
	err := parallel.Run(context.Background(), len(parts), 0, func(_ context.Context, p int) error {
		return weights.Guard("a matrix", func() error { // a caller's guard does not cover other goroutines
			weights.Need(m.Data)
			for i := p * finitePart; i < min(n, (p+1)*finitePart); i++ {
				if b := f.Elem(m.Data, i); !f.Finite(b) {
					parts[p].add(float64(f.Value(b)), i)
				}
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	var found specials
	for _, part := range parts {
		found.join(part)
	}
	return found.err(m.Cols)
}

// finitePart is the number of elements that a goroutine checks at a time.
const finitePart = 1 << 20

// finite returns the error of [Matrix.Finite] for results with cols columns.
func finite(y []float64, cols int) error {
	var found specials
	for i, v := range y {
		if v-v != 0 {
			found.add(v, i)
		}
	}
	return found.err(cols)
}

// specials counts the values that are not finite.
type specials struct{ nan, inf, first int }

func (s *specials) add(v float64, at int) {
	if s.nan+s.inf == 0 {
		s.first = at
	}
	if math.IsNaN(v) {
		s.nan++
	} else {
		s.inf++
	}
}

// join adds the counts of later elements.
func (s *specials) join(later specials) {
	if s.nan+s.inf == 0 {
		s.first = later.first
	}
	s.nan += later.nan
	s.inf += later.inf
}

func (s specials) err(cols int) error {
	if s.nan+s.inf == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d NaN and %d infinite values, the first at row %d, column %d", ErrNotFinite, s.nan, s.inf, s.first/cols, s.first%cols)
}
