package hessian

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
)

// Given is the statistics of an input that were computed elsewhere, such as on a GPU.
type Given struct {
	Layers        []string // names of the weights that read the input
	Width, Tokens int
	Min, Max      float32
	// Triangle is the upper triangle of H, row by row without gaps.
	Triangle []float32
}

// Wanted describes the statistics that a folder lacks.
type Wanted struct {
	// Blocks is the number of blocks up to the last layer without statistics. The head counts as a block.
	Blocks int
	// Input reports whether the input of some layers was wanted when run began.
	Input func(layers []string) bool
	// Keep writes the statistics of an input. One goroutine at a time calls it.
	Keep func(Given) error
}

// CollectFrom is [Collect] with statistics that run computes. It does not call run if the folder has all statistics.
func CollectFrom(ctx context.Context, d *forward.Decoder, tokens [][]int32, dir string, o Options, run func(Wanted) error) (*Store, error) {
	return collect(ctx, d, tokens, dir, o, func(c *collection, blocks int) error {
		before := maps.Clone(c.done)
		return run(Wanted{blocks, func(layers []string) bool { return before[layers[0]] == nil }, c.keep})
	})
}

// keep writes statistics that were computed elsewhere.
func (c *collection) keep(g Given) error {
	if want := g.Width * (g.Width + 1) / 2; len(g.Triangle) != want || len(g.Layers) == 0 || g.Tokens < 1 {
		return fmt.Errorf("statistics of %q: %d values, %d inputs and %d tokens do not belong together: give n·(n+1)/2 values for n inputs, and at least 1 token", g.Layers, len(g.Triangle), g.Width, g.Tokens)
	}
	if !finite(g.Min) || !finite(g.Max) {
		return notFinite(g.Layers[0])
	}
	trace := 0.0
	for i, at := 0, 0; i < g.Width; i++ {
		trace += float64(g.Triangle[at])
		at += g.Width - i
	}
	rest := g.Triangle
	s := &sum{names: g.Layers, tokens: g.Tokens, low: g.Min, high: g.Max}
	return c.writeFile(s, g.Width, trace/float64(g.Width), func(i int) []float32 {
		row := rest[:g.Width-i]
		rest = rest[g.Width-i:]
		return row
	})
}

// Bytes returns the approximate size of the statistics of all inputs on disk.
func Bytes(d *forward.Decoder) (n int64) {
	if d == nil {
		return 0
	}
	for _, in := range d.Inputs() {
		width := int64(in.Layers[0].Inputs)
		n += 2 * width * (width + 1)
	}
	return n
}

// Digest returns a checksum of every input's layers, tokens and range. Statistics from another kind of card or library have
// another checksum.
func (s *Store) Digest() string {
	h := sha256.New()
	for _, in := range s.index.Inputs {
		fmt.Fprintf(h, "%q %d %d %x %x %x\n", in.Layers, in.Width, in.Tokens, math.Float64bits(in.Min), math.Float64bits(in.Max), math.Float64bits(in.RMS))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
