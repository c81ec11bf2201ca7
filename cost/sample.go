package cost

import (
	"context"
	"fmt"
	"math"
	"sync"
)

// Tiles lie at evenly spread places. They are sampled in separate parts. The differences between parts give the
// standard error of the mean.
const (
	sampleTiles  = 160
	layerTiles   = 24 // tiles of one of a model's many layers
	sampleChunks = 64
	sampleParts  = 8
)

// sample is the features of a product, part by part.
type sample [sampleParts]Features

// mean returns the mean over the parts in which a feature is known.
func (s *sample) mean() (m Features) {
	for i := range m {
		sum, n := 0.0, 0.0
		for p := range s {
			if v := s[p][i]; !math.IsNaN(v) {
				sum, n = sum+v, n+1
			}
		}
		m[i] = sum / n
	}
	return m
}

// lattice is a sequence of places spread evenly in three dimensions.
type lattice [3]float64

func (l *lattice) next() (a, b, c float64) {
	for i, step := range [...]float64{0.8191725133961645, 0.6710436067037893, 0.5497004779019703} {
		l[i] += step
		l[i] -= math.Floor(l[i])
	}
	return l[0], l[1], l[2]
}

// take samples a product of w and x. swapped is true if the card streams the operand whose role is stationary.
func (f *Facts) take(ctx context.Context, role Role, swapped bool, tileCount int, w, x matrix) (s sample, err error) {
	if w.k != x.k {
		return s, fmt.Errorf("w has %d columns and x has %d: both must have K columns", w.k, x.k)
	}
	stationary, streaming := &w, &x
	if (role == Streaming) != swapped {
		stationary, streaming = &x, &w
	}
	buffer := tileBuffers.Get().(*[]element)
	defer tileBuffers.Put(buffer)
	tiles, err := f.Datapath.takeTiles(ctx, tileCount, stationary, streaming, buffer)
	if err != nil {
		return s, err
	}
	t := newTileCounter(&f.Datapath, newDecoder(w.f))
	p := spreadOf(tiles)
	for part := range s {
		t.reset()
		for i := part; i < len(tiles); i += sampleParts {
			t.add(tiles[i], p, (float64(i)+0.5)/float64(len(tiles))*float64(w.k))
		}
		t.into(&s[part])
	}
	return s, s.takeBuses(ctx, f.Memory, &w, &x)
}

// tileBuffers are buffers for the tiles of a sample.
var tileBuffers = sync.Pool{New: func() any { return new([]element) }}

// takeTiles decodes n tiles of two operands into a buffer. If the buffer is too small, it makes a larger one.
func (p *Datapath) takeTiles(ctx context.Context, n int, stationary, streaming *matrix, buffer *[]element) ([]tile, error) {
	var (
		places lattice
		tiles  []tile
	)
	d, tileK := newDecoder(stationary.f), p.tileK()
	if need := n * (p.stationaryTile() + p.streamingTile()) * tileK; len(*buffer) < need {
		*buffer = make([]element, need)
	}
	rest := *buffer
	seenK := stationary.seenK
	if len(streaming.seenK) > 1 || streaming.seenK[0] != [2]int{0, streaming.k} {
		seenK = streaming.seenK
	}
	for range n {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		a, b, c := places.next()
		col, cols := place(seenK, a, tileK, tileK)
		var t tile
		for _, o := range []struct {
			m          *matrix
			rows       *[]row
			u          float64
			need, unit int
		}{{stationary, &t.stationary, b, p.stationaryTile(), p.StationaryRows}, {streaming, &t.streaming, c, p.streamingTile(), 2 * p.round()}} {
			first, rows := place(o.m.seenRows, o.u, o.need, o.unit)
			data, err := o.m.read(ctx, first, min(rows, o.need), col, min(cols, tileK))
			if err != nil {
				return nil, err
			}
			rows = min(rows, o.need)
			*o.rows = d.rows(rest, data, rows, min(cols, tileK), tileK)
			rest = rest[rows*tileK:]
		}
		tiles = append(tiles, t)
	}
	return tiles, nil
}

// rows returns the rows of a tile, each of width elements, in a buffer. Elements beyond a narrow matrix are zero.
func (d *decoder) rows(buffer []element, data []byte, rows, cols, width int) []row {
	out := make([]row, rows)
	for r := range out {
		out[r] = buffer[r*width:][:width:width]
		d.elements(out[r][:cols], data[r*cols*d.f.Bits/8:])
		clear(out[r][cols:])
	}
	return out
}

// spreadOf returns the mean and variance of products in tiles.
func spreadOf(tiles []tile) (p spread) {
	var sum, squares, n float64
	for i := range tiles {
		t := &tiles[i]
		for a := 0; a < len(t.stationary); a += 5 {
			for b := 0; b < len(t.streaming); b += 3 {
				for k := range t.streaming[b] {
					v := float64(t.stationary[a][k].value * t.streaming[b][k].value)
					sum += v
					squares += float64(v * v)
					n++
				}
			}
		}
	}
	p.mean = sum / n
	p.variance = max(0, squares/n-float64(p.mean*p.mean))
	return p
}

func (s *sample) takeBuses(ctx context.Context, lags MemoryLags, w, x *matrix) error {
	var places lattice
	for part := range s {
		var buses [2]bus
		for i, m := range []*matrix{w, x} {
			buses[i].f, buses[i].lags = m.f, lags
			for range sampleChunks / sampleParts {
				u, v, _ := places.next()
				data, err := m.chunk(ctx, u, v)
				if err != nil {
					return err
				}
				buses[i].add(data)
			}
		}
		s[part].buses(&buses[0], &buses[1])
	}
	return nil
}
