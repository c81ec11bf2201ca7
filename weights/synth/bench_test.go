package synth

import (
	"context"
	"runtime"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// BenchmarkGenerate draws and encodes one matrix on all cores and writes it nowhere.
func BenchmarkGenerate(b *testing.B) {
	for _, d := range []weights.DType{weights.BF16, weights.F16, weights.F32, weights.F8E4M3} {
		b.Run(d.String(), func(b *testing.B) {
			info := weights.Info{Name: "w", DType: d, Shape: []int{5632, 2048}}
			_, placed, err := weights.EncodeHeader([]weights.Info{info}, nil)
			if err != nil {
				b.Fatal(err)
			}
			m := &model{kinds: map[string]kind{"w": linear}}
			s := shard{tensors: placed}
			b.SetBytes(s.size())
			for b.Loop() {
				err := pipeline(context.Background(), runtime.GOMAXPROCS(0), m.blocks(s, 1), func([]byte) error { return nil })
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
