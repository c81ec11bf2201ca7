package program

import (
	"context"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/testdevice"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// TestHessianOfAnotherShape: a Hessian that does not have the inputs as rows and columns is refused.
func TestHessianOfAnotherShape(t *testing.T) {
	source := &quant.Weight{Name: "w", Parts: []quant.Part{{Tensor: weights.Tensor{File: "f"}}}}
	for outAxis := range 2 {
		p := &Program{Source: source, Rows: 3, Cols: 3, OutAxis: outAxis}
		for rows := 2; rows <= 4; rows++ {
			for cols := 2; cols <= 4; cols++ {
				of := func(context.Context, string) (sgemm.Matrix, error) { return sgemm.Dense(rows, cols, nil), nil }
				if _, err := p.hessian(t.Context(), of); (err == nil) != (rows == 3 && cols == 3) {
					t.Errorf("outputs on axis %d, %d×%d: %v", outAxis, rows, cols, err)
				}
			}
		}
	}
}

// TestBatch: a device gets as many results at a time as have 2^26 elements together, and at least one. The CPU gets one.
func TestBatch(t *testing.T) {
	for _, test := range [][3]int{{0, 0, 1 << 26}, {1 << 10, 1 << 12, 16}, {1 << 10, 1<<12 + 1, 15}, {1 << 13, 1 << 13, 1}, {1 << 14, 1 << 13, 1}} {
		l := &Layer{Rows: test[0], Cols: test[1]}
		if n := l.Batch(); n != 1 {
			t.Errorf("%d×%d on the CPU: %d", l.Rows, l.Cols, n)
		}
		if l.on = testdevice.New().Hessian("", nil); l.Batch() != test[2] {
			t.Errorf("%d×%d on a device: %d, want %d", l.Rows, l.Cols, l.Batch(), test[2])
		}
	}
}

// TestBlockRows: a block has about 2^15 elements, and whole units of rows.
func TestBlockRows(t *testing.T) {
	for _, test := range [][3]int{{0, 1, 1 << 15}, {1 << 10, 1, 32}, {1 << 10, 4, 32}, {5000, 1, 6}, {5000, 4, 4}, {5000, 16, 16}, {1 << 20, 1, 1}} {
		p := &Program{Cols: test[0], Unit: test[1]}
		if n := p.blockRows(); n != test[2] {
			t.Errorf("%d columns, units of %d rows: %d rows, want %d", p.Cols, p.Unit, n, test[2])
		}
	}
}
