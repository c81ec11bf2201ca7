package cost

import (
	"context"
	"fmt"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// benchBytes is larger than any cache, so that the copy beside the kernel reads memory too.
const benchBytes = 256 << 20

// BenchmarkCopy is the yardstick: a plain copy of the same buffer, into memory already touched.
func BenchmarkCopy(b *testing.B) {
	data, to := make([]byte, benchBytes), make([]byte, benchBytes)
	fillNormal(format(weights.BF16), data, 0.02)
	copy(to, data)
	b.SetBytes(benchBytes)
	for b.Loop() {
		copy(to, data)
	}
}

// BenchmarkCopyFresh copies into memory the process has not touched yet, as a first copy does.
func BenchmarkCopyFresh(b *testing.B) {
	data := make([]byte, benchBytes)
	fillNormal(format(weights.BF16), data, 0.02)
	b.SetBytes(benchBytes)
	for b.Loop() {
		copy(make([]byte, benchBytes), data)
	}
}

// BenchmarkMeasure reads all activity with one worker. Deviation 0.02 is a trained layer's; at 1,
// values of 2 and above send most groups of BF16 through the second, exact look for specials.
func BenchmarkMeasure(b *testing.B) {
	for _, d := range dtypes {
		for _, sigma := range []float64{0.02, 1} {
			if d == weights.I8 {
				sigma *= 40
			}
			b.Run(fmt.Sprintf("%s/sigma=%g", d, sigma), func(b *testing.B) {
				f := format(d)
				data := make([]byte, benchBytes)
				fillNormal(f, data, sigma)
				const cols = 4096
				t := tensor(d, benchBytes/(f.Bits/8)/cols, cols, data)
				b.SetBytes(benchBytes)
				for b.Loop() {
					if _, err := Measure(context.Background(), t, 1); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkMeasureSparse has half of its BF16 elements zero, at random: the worst case.
func BenchmarkMeasureSparse(b *testing.B) {
	f := format(weights.BF16)
	data := make([]byte, benchBytes)
	fillNormal(f, data, 0.02)
	for i := 0; i < len(data)/2; i++ {
		if (uint64(i)*0x9E3779B97F4A7C15)>>63 == 0 {
			f.SetElem(data, i, 0)
		}
	}
	t := tensor(f.DType, benchBytes/2/4096, 4096, data)
	b.SetBytes(benchBytes)
	for b.Loop() {
		if _, err := Measure(context.Background(), t, 1); err != nil {
			b.Fatal(err)
		}
	}
}
