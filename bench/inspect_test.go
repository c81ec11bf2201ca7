package bench

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/weights"
)

// BenchmarkInspect computes the activity of a 256 MB BF16 tensor on one core, and a copy of the same memory for
// comparison.
func BenchmarkInspect(b *testing.B) {
	const rows, cols = 32768, 4096
	data := make([]byte, 2*rows*cols)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range rows * cols {
		v := math.Float32bits(float32(0.02 * r.NormFloat64()))
		data[2*i], data[2*i+1] = byte(v>>16), byte(v>>24)
	}
	t := weights.Tensor{Info: weights.Info{Name: "w", DType: weights.BF16, Shape: []int{rows, cols}, End: int64(len(data))}, Data: data}
	b.Run("activity", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if _, err := cost.Measure(context.Background(), t, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
	dst := make([]byte, len(data))
	copy(dst, data) // so that its pages are mapped
	b.Run("copy", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			copy(dst, data)
		}
	})
}
