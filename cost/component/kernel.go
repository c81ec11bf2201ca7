package component

import (
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// Kernel is the work of each component in one execution of a GPU kernel.
type Kernel struct {
	Name string     `json:"name"`
	Type arith.Type `json:"type,omitzero"` // the zero value without arithmetic
	Ops  float64    `json:"operations,omitempty"`
	// Asked is the number of bytes that multiprocessors read from the L2 cache or write to it.
	Asked float64 `json:"asked_bytes,omitempty"`
	// Memory is the number of bytes that always pass between the cache and memory.
	Memory float64 `json:"memory_bytes,omitempty"`
	// Again is the number of bytes that are read again and may have been evicted from the cache.
	Again float64 `json:"again_bytes,omitempty"`
	// Bits is the relative toggling of the operands in the multipliers, and Moved that of all bytes in transfers: 0
	// for constants, 1 for random operands and for uniformly random bytes. See [cost.Calibration.Toggling].
	Bits  float64 `json:"bits"`
	Moved float64 `json:"moved_bits"`
	// Awake is the share of the multiprocessors that have work while the kernel runs: 1 for most kernels, 0 for empty
	// launches.
	Awake float64 `json:"awake"`
	// Launches is the number of kernels in an execution. Default: 1.
	Launches int `json:"launches,omitempty"`
	// Idle is the time of an execution, in seconds, in which no multiprocessor has work, besides the time of
	// launches.
	Idle float64 `json:"idle_seconds,omitempty"`
	// Seconds is the time of an execution at Clock, in MHz. 0: unknown; it is then derived from the highest measured
	// rates, at the card's highest clock.
	Seconds float64 `json:"seconds,omitempty"`
	Clock   float64 `json:"clock_mhz,omitempty"`
	// Temperature is the card's temperature in °C. 0: unknown; it is then derived from the power.
	Temperature float64 `json:"temperature_c,omitempty"`
}

// Validate returns an error for an impossible kernel.
func (k Kernel) Validate() error {
	for _, v := range []float64{k.Ops, k.Asked, k.Memory, k.Again, k.Bits, k.Moved, k.Awake, k.Seconds, k.Clock, k.Idle, k.Temperature} {
		if !(v >= 0) || math.IsInf(v, 1) {
			return fmt.Errorf("kernel %s: work, bits and times must be finite and at least 0: %+v", k.Name, k)
		}
	}
	switch {
	case k.Ops > 0 && k.Type == 0:
		return fmt.Errorf("kernel %s has operations, but no type: give the type of its operands", k.Name)
	case k.Launches < 0 || k.Seconds > 0 && k.Idle > k.Seconds:
		return fmt.Errorf("kernel %s: launches (%d) must be at least 0, and the time without work (%g s) at most the total time (%g s)", k.Name, k.Launches, k.Idle, k.Seconds)
	case (k.Seconds > 0) != (k.Clock > 0):
		return fmt.Errorf("kernel %s: give the measured time and the clock together, or neither", k.Name)
	}
	return nil
}

// Gemm is a product y[M,N] = x[M,K]·w[N,K]ᵀ.
type Gemm struct {
	Type    arith.Type
	M, N, K int
	// Cold is true if w is read from memory every time, as in decoding.
	Cold bool
	// Tile is the number of results of a tile. Default: derived from the card's [Tiles].
	Tile float64
	// L2 is the size of the cache in bytes. Default: that of the card's [Tiles].
	L2 float64
	// Around is the number of bytes of all work between two executions, such as the other layers of a model. Default:
	// 0.
	Around float64
	// Bits and Moved are as in [Kernel].
	Bits, Moved float64
}

// bytesOf returns the sizes in bytes of an operand's element and of a result's element.
func bytesOf(t arith.Type) (operand, result float64) {
	return float64(t.Operand().Bits()) / 8, float64(t.Output().Bits()) / 8
}

// Random returns Bits and Moved of random normal operands of a type.
func (f *Facts) Random(t arith.Type) (bits, moved float64) { return 1, f.RandomMoved[t] }

// Bytes returns the size of operands and results in bytes.
func (g Gemm) Bytes() float64 {
	operand, result := bytesOf(g.Type)
	m, n, k := float64(g.M), float64(g.N), float64(g.K)
	return float64(operand*k*(m+n)) + float64(result*m*n)
}

// Kernel derives the product's work on a card. Its time is unknown.
func (g Gemm) Kernel(name string, card *Facts) (Kernel, error) {
	if !g.Type.Valid() || min(g.M, g.N, g.K) < 1 {
		return Kernel{}, fmt.Errorf("kernel %s: a product of %d×%d×%d in %v: every dimension must be at least 1, and the type a known one", name, g.M, g.N, g.K, g.Type)
	}
	if g.L2 <= 0 {
		g.L2 = card.Tiles.L2
	}
	operand, result := bytesOf(g.Type)
	m, n, k := float64(g.M), float64(g.N), float64(g.K)
	if g.Tile <= 0 {
		g.Tile = min(card.Tiles.Largest, max(card.Tiles.Smallest, m*n/card.Tiles.Wave))
	}
	awake := min(1, m*n/g.Tile/card.Tiles.Wave)
	short := min(card.Tiles.ShortSide*math.Sqrt(g.Tile), m, n)
	long := g.Tile / short
	results := float64(result * m * n)
	asked := float64(operand*m*n*k*(1/short+1/long/card.Tiles.SharedBy)) + results
	kernel := Kernel{Name: name, Type: g.Type, Ops: 2 * m * n * k, Asked: asked, Bits: g.Bits, Moved: g.Moved, Awake: awake}
	if g.Cold {
		kernel.Memory = operand * n * k
		return kernel, nil
	}
	all := g.Bytes()
	lost := func(bytes float64) float64 { return max(0, 1-g.L2/card.Tiles.CacheCopies/bytes) }
	kernel.Memory = all * lost(all+g.Around)
	kernel.Again = max(0, asked-all) * lost(all)
	return kernel, nil
}

// And returns one kernel for two: first k, then o. Their types must be equal, and both times known or both unknown.
func (k Kernel) And(o Kernel) (Kernel, error) {
	if k.Type != 0 && o.Type != 0 && k.Type != o.Type {
		return Kernel{}, fmt.Errorf("kernels %s and %s have different types, %s and %s, and cannot be joined: use them separately", k.Name, o.Name, k.Type, o.Type)
	}
	if k.Type == 0 {
		k.Type = o.Type
	}
	mean := func(a, b, weightA, weightB float64) float64 {
		if weightA+weightB == 0 {
			return (a + b) / 2
		}
		return (float64(a*weightA) + float64(b*weightB)) / (weightA + weightB)
	}
	k.Bits = mean(k.Bits, o.Bits, k.Ops, o.Ops)
	k.Moved = mean(k.Moved, o.Moved, k.Asked+k.Memory, o.Asked+o.Memory)
	k.Awake = max(k.Awake, o.Awake)
	k.Launches = max(1, k.Launches) + max(1, o.Launches)
	k.Idle += o.Idle
	k.Ops, k.Asked, k.Memory, k.Again = k.Ops+o.Ops, k.Asked+o.Asked, k.Memory+o.Memory, k.Again+o.Again
	k.Seconds += o.Seconds
	k.Clock = max(k.Clock, o.Clock)
	return k, nil
}
