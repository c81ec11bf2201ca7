package synth

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"sync"
)

// key returns the seed of the random streams for a part of a tensor: its channels' factors, or its values.
func key(seed uint64, tensor, part string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(tensor))
	h.Write([]byte{0})
	h.Write([]byte(part))
	return mix(seed) ^ mix(h.Sum64())
}

// newStream returns the random generator of one row under a key. Its numbers depend only on key and row, so any worker can draw
// any row.
func newStream(key uint64, row int) *rand.PCG {
	return rand.NewPCG(key, mix(key+uint64(row)))
}

// mix spreads every bit of x over the whole word (the finalizer of SplitMix64), so that consecutive seeds and rows start
// unrelated streams.
func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// normals holds quantiles of the normal distribution, at the middles of 65536 equally probable intervals. A uniform 16-bit
// index draws a normal deviate with a magnitude of at most 4.3.
type normals [1 << 16]float32

var quantiles = sync.OnceValue(func() *normals {
	t := new(normals)
	for i := range len(t) / 2 {
		p := float64((float64(i) + 0.5) / float64(len(t)))
		z := float32(-math.Sqrt2 * math.Erfinv(1-float64(2*p)))
		t[i], t[len(t)-1-i] = z, -z
	}
	return t
})

// draw fills dst with normal deviates of mean 0 and variance 1.
func (t *normals) draw(dst []float32, rng *rand.PCG) {
	for len(dst) >= 4 {
		u := rng.Uint64()
		dst[0], dst[1] = t[uint16(u)], t[uint16(u>>16)]
		dst[2], dst[3] = t[uint16(u>>32)], t[uint16(u>>48)]
		dst = dst[4:]
	}
	if len(dst) > 0 {
		u := rng.Uint64()
		for i := range dst {
			dst[i] = t[uint16(u>>(16*i))]
		}
	}
}
