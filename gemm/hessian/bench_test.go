package hessian

import (
	"context"
	"fmt"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// BenchmarkAdd counts what one half of XᵀX takes. Run it with -cpu 1 for the speed of a core.
func BenchmarkAdd(b *testing.B) {
	for _, width := range []int{512, 1408, 4096} {
		b.Run(fmt.Sprintf("inputs=%d", width), func(b *testing.B) {
			x := sgemm.Dense(2048, width, nil)
			for i := range x.Data {
				x.Data[i] = float32(i%17) - 8
			}
			t := newTriangle(width)
			for b.Loop() {
				if low, high := extremes(x, 1); low != -8 || high != 8 {
					b.Fatal(low, high)
				}
				if err := t.add(context.Background(), x, 1); err != nil {
					b.Fatal(err)
				}
			}
			flops := float64(x.Rows) * float64(width) * float64(width+1) * float64(b.N)
			b.ReportMetric(flops/1e9/b.Elapsed().Seconds(), "GFLOP/s")
		})
	}
}
