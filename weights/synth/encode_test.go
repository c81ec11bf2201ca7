package synth

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Every encoder rounds as the format does; an 8-bit one as the format does from BF16.
func TestEncodersRoundToNearest(t *testing.T) {
	via, _ := weights.BF16.Format()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOf(rapid.Float32Range(-200, 200)).Draw(t, "values")
		for d, encode := range encoders {
			format, _ := d.Format()
			dst := make([]byte, len(values)*format.Bits/8)
			encode(dst, values)
			for i, v := range values {
				if format.Bits == 8 {
					v = via.Value(via.FromValue(v))
				}
				if got, want := format.Elem(dst, i), format.FromValue(v); got != want {
					t.Fatalf("%s: element %d (%g) is %#x, want %#x", d, i, v, got, want)
				}
			}
		}
	})
}
