package cost

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/weights"
)

// counter is a fast way to count. Tests compare it with the definition, addPlain.
type counter struct {
	name string
	unit int // bytes that the fast path processes at a time
	add  func(t *tally, l *lanes, cur, before, above []byte)
}

// words is the counter in plain Go. It runs on every machine.
var words = counter{"words", groupBytes, (*tally).addWords}

var kernel = counter{"AVX-512", 1024, func(t *tally, l *lanes, cur, before, above []byte) {
	n := t.addBlocks(l, cur, before, above)
	t.addPlain(l.format, cur[n:], from(before, n), from(above, n))
}}

func haveKernel() bool {
	return new(tally).addBlocks(newLanes(format(weights.BF16)), make([]byte, kernel.unit), nil, nil) > 0
}

// forCounters runs a test for each available counter.
func forCounters(t *testing.T, test func(*testing.T, counter)) {
	t.Run(words.name, func(t *testing.T) { test(t, words) })
	t.Run(kernel.name, func(t *testing.T) {
		if !haveKernel() {
			t.Skip("not on this machine or not in this build")
		}
		test(t, kernel)
	})
}

// neighbours returns n bytes of elements at the end of data, the elements before them, and the elements lag bytes
// before them. data has n+max(size, lag) bytes.
func neighbours(data []byte, size, lag, n int) (cur, before, above []byte) {
	at := len(data) - n
	return data[at:], data[at-size:][:n], data[at-lag:][:n]
}

// banded copies data to an address with a given remainder modulo 64, between bands of a byte.
func banded(data []byte, offset int, band byte) []byte {
	b := bytes.Repeat([]byte{band}, offset+len(data)+2*64)[64+offset:]
	return b[:copy(b, data)]
}

func TestCountersAgree(t *testing.T) {
	forCounters(t, func(t *testing.T, c counter) {
		rapid.Check(t, func(t *rapid.T) {
			f := format(rapid.SampledFrom(dtypes).Draw(t, "dtype"))
			l := newLanes(f)
			n := rapid.IntRange(0, 11*c.unit).Draw(t, "bytes") / l.size * l.size
			lag := rapid.IntRange(l.size, 2*c.unit).Draw(t, "lag") / l.size * l.size
			data := elements(t, f, (n+lag)/l.size)
			b := banded(data, rapid.IntRange(0, 63).Draw(t, "offset"), rapid.SampledFrom([]byte{0, 0x7F, 0xFF}).Draw(t, "band"))
			cur, before, above := neighbours(b, l.size, lag, n)
			if rapid.Bool().Draw(t, "first row") {
				above = nil
			}
			if rapid.Bool().Draw(t, "nothing before") {
				before = nil
			}
			var fast, plain tally
			c.add(&fast, l, cur, before, above)
			plain.addPlain(f, cur, before, above)
			if fast != plain {
				t.Fatalf("fast %+v\nplain %+v", fast, plain)
			}
			if !bytes.Equal(b, data) {
				t.Fatal("the data was changed")
			}
		})
	})
}

// TestEachSpecialEverywhere: one special element is found anywhere among ordinary ones.
func TestEachSpecialEverywhere(t *testing.T) {
	forCounters(t, func(t *testing.T, c counter) {
		for _, d := range dtypes {
			f := format(d)
			l := newLanes(f)
			for _, special := range []uint32{0, f.SignMask(), 1, f.MantMask(), f.MaxFinite, f.MaxFinite + 1, f.SignMask() - 1, f.SignMask()<<1 - 1} {
				data := make([]byte, c.unit)
				for j := range c.unit / l.size {
					f.SetElem(data, j, f.FromValue(1))
				}
				var plain tally
				for i := range c.unit / l.size {
					f.SetElem(data, i, special)
					if i == 0 {
						plain.addPlain(f, data, data, data)
					}
					var fast tally
					c.add(&fast, l, data, data, data)
					if fast != plain {
						t.Errorf("%s %#x at %d: fast %+v, plain %+v", d, special, i, fast, plain)
					}
					f.SetElem(data, i, f.FromValue(1))
				}
			}
		}
	})
}

// TestPairsOfSpecials: values that are often special, with other such values before and above them, are counted as defined.
func TestPairsOfSpecials(t *testing.T) {
	forCounters(t, func(t *testing.T, c counter) {
		for _, d := range dtypes {
			f := format(d)
			l, r := newLanes(f), rand.New(rand.NewPCG(uint64(d), 3))
			classes := []uint32{0, 0, f.SignMask(), 1, f.MaxFinite, f.SignMask() - 1, f.FromValue(1), f.FromValue(-2)}
			var data [3][]byte
			for i := range data {
				data[i] = make([]byte, 2*c.unit)
				for j := range len(data[i]) / l.size {
					f.SetElem(data[i], j, classes[r.IntN(len(classes)-2*i)])
				}
			}
			var fast, plain tally
			c.add(&fast, l, data[0], data[1], data[2])
			plain.addPlain(f, data[0], data[1], data[2])
			if fast != plain {
				t.Errorf("%s: fast %+v, plain %+v", d, fast, plain)
			}
		}
	})
}

// TestOrdinaryGroups: of the formats with eight exponent bits, only groups with a value outside [2⁻⁶³, 2) may have special values.
func TestOrdinaryGroups(t *testing.T) {
	for _, d := range []weights.DType{weights.BF16, weights.F32} {
		f := format(d)
		for value, want := range map[float32]uint64{1: 0, -1.5: 0, 0x1p-63: 0, 0x1.fp0: 0, 2: 2, -3: 2, 0x1.fp-64: 2, 0: 2} {
			data := make([]byte, 3*groupBytes)
			for i := range len(data) / (f.Bits / 8) {
				f.SetElem(data, i, f.FromValue(-0.75))
			}
			f.SetElem(data, groupBytes/(f.Bits/8)+5, f.FromValue(value))
			if got := new(positional).addOnes(newLanes(f), groups(data)); got != want {
				t.Errorf("%s %g: mask %b, want %b", d, value, got, want)
			}
		}
	}
}

// FuzzCounters repeats a pattern. If gap is not 0, the pattern occurs once, gap bytes into ordinary elements.
func FuzzCounters(f *testing.F) {
	f.Add([]byte{0, 0, 0x80, 0x7F, 0xC0, 0xFF}, uint8(0), uint16(3), uint16(9000), uint16(0))
	f.Add([]byte{1, 0, 0x80, 0x7F, 0, 0x80, 0, 0}, uint8(2), uint16(1), uint16(1500), uint16(70))
	f.Add([]byte{0x7F, 0x80, 0, 0xFE}, uint8(5), uint16(64), uint16(1024), uint16(1025))
	f.Fuzz(func(t *testing.T, pattern []byte, dtype uint8, lag, n, gap uint16) {
		l := newLanes(format(dtypes[int(dtype)%len(dtypes)]))
		length := int(n) % (10 * kernel.unit) / l.size * l.size
		back := (1 + int(lag)%kernel.unit) * l.size
		data := make([]byte, length+back)
		if len(pattern) == 0 {
			return
		}
		if gap == 0 {
			for at := 0; at < len(data); {
				at += copy(data[at:], pattern)
			}
		} else {
			for i := range len(data) / l.size {
				l.format.SetElem(data, i, l.format.FromValue(-0.75))
			}
			copy(data[int(gap)%len(data):], pattern)
		}
		cur, before, above := neighbours(data, l.size, back, length)
		var plain tally
		plain.addPlain(l.format, cur, before, above)
		for _, c := range []counter{words, kernel} {
			var fast tally
			c.add(&fast, l, cur, before, above)
			if fast != plain {
				t.Errorf("%s %+v\nplain %+v", c.name, fast, plain)
			}
		}
	})
}
