package cost

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// TestBusCountsEveryBit compares the counts of a bus with counts of single bits, for rows of every length up to some
// hundred bytes, and for a row too long for one word's counters.
func TestBusCountsEveryBit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, d := range []weights.DType{weights.BF16, weights.F32, weights.F8E4M3, weights.I8} {
		f, _ := d.Format()
		size := f.Bits / 8
		for n := 0; n <= 4096; n += size {
			if n > 160 && n < 4096 {
				continue
			}
			data := make([]byte, n)
			for i := range data {
				data[i] = byte(r.Uint32() * r.Uint32N(2))
				if n == 4096 {
					data[i] = 0xFF
				}
			}
			b := bus{f: f, lags: MemoryLags{Element: 2, Sector: 32, Line: 64}}
			b.add(data)
			var ones [32]float64
			for i := range n * 8 {
				if data[i/8]>>(i%8)&1 == 1 {
					ones[i%f.Bits]++
				}
			}
			if b.ones != ones || b.elements != float64(n/size) {
				t.Fatalf("%s: of %d bytes %v ones of %v elements, want %v", d, n, b.ones, b.elements, ones)
			}
			nonzero := rate{n: float64(n)}
			for _, v := range data {
				nonzero.sum += truth(v != 0)
			}
			if b.nonzero != nonzero {
				t.Fatalf("%s: of %d bytes %v are not zero, want %v", d, n, b.nonzero, nonzero)
			}
			for lag, got := range map[int]rate{2: b.element, 32: b.sector, 64: b.line, 0: b.set} {
				var want rate
				sum := 0
				for i := lag; i < n; i++ {
					was := byte(0)
					if lag > 0 {
						was = data[i-lag]
					}
					sum += bits.OnesCount8(data[i] ^ was)
				}
				want.addAll(sum, max(0, n-lag))
				if got != want {
					t.Fatalf("%s: of %d bytes at a lag of %d %+v, want %+v", d, n, lag, got, want)
				}
			}
		}
	}
}
