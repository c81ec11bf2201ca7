package bench

import (
	"context"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm"
)

func qblocks(m gemm.Matrix) cost.Operand {
	size := m.DType.Bits() / 8
	return func(_ context.Context, row, rows, col, cols int) ([]byte, error) {
		var out []byte
		for r := row; r < row+rows; r++ {
			out = append(out, m.Data[(r*m.Cols+col)*size:][:cols*size]...)
		}
		return out, nil
	}
}

func TestQPredict(t *testing.T) {
	c, err := cost.FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range quantisedSeriesList() {
		for _, role := range []cost.Role{cost.Stationary, cost.Streaming} {
			var first float64
			x := s.activations(t)
			for i, q := range s.make(t, 2048) {
				p := s.product(x, q)
				cp := cost.Product{Type: s.typ, M: s.tokens, N: p.Problem.N, K: p.Problem.K, Role: role, Cold: s.tokens == 16}
				e, err := c.Predict(t.Context(), cp, qblocks(p.X), qblocks(p.W))
				if err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					first = *e.Joules
				}
				t.Logf("%-20s %v %-50s %5.1f dB %.4f", s.name, role, q.name, q.snr, *e.Joules/first)
			}
		}
	}
}
