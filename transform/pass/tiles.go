package pass

import (
	"context"
	"math"

	"github.com/lowtoggle/lowtoggle/transform/program"
)

// square is the sum of the squares of a block's n values.
type square struct{ sum, n float64 }

func (s square) mean() float64 { return s.sum / s.n }

func (s square) plus(o square) square { return square{s.sum + o.sum, s.n + o.n} }

// smallestTiles selects the tiles with the smallest mean squares as long as their total is within bounds. It also
// returns the total. It finds the bits of the threshold 16 at a time, from the highest: each pass over the layer counts
// the tiles for the next 16 bits.
func smallestTiles(ctx context.Context, l *Layer, tile [2]int, within func(taken square) bool) (Zeros, square, error) {
	var taken square // sum over all tiles below prefix
	prefix := uint64(0)
	for shift := 48; shift >= 0; shift -= 16 {
		under := make([]square, 1<<16)
		err := eachSquare(ctx, l, tile, func(_ int, s square) {
			if key := math.Float64bits(s.mean()) >> shift; key>>16 == prefix {
				under[key&0xFFFF] = under[key&0xFFFF].plus(s)
			}
		})
		if err != nil {
			return Zeros{}, taken, err
		}
		next := 0
		for next < len(under) && within(taken.plus(under[next])) {
			taken = taken.plus(under[next])
			next++
		}
		if next == len(under) && shift == 48 {
			return Zeros{Block: &tile, Threshold: math.MaxFloat64}, taken, nil
		}
		prefix = prefix<<16 + uint64(next) // all 65536 values are within bounds: carry into the higher bits
	}
	z := Zeros{Block: &tile, Threshold: math.Float64frombits(prefix)}
	full := false
	err := eachSquare(ctx, l, tile, func(number int, s square) {
		if s.mean() != z.Threshold || full {
			return
		}
		if full = !within(taken.plus(s)); !full {
			taken, z.Ties = taken.plus(s), number+1
		}
	})
	return z, taken, err
}

// eachSquare visits the tiles of the layer before the lossy passes. Tiles with values that are not finite are left
// out.
func eachSquare(ctx context.Context, l *Layer, tile [2]int, fn func(number int, s square)) error {
	p := *l.base
	p.Unit = tile[0]
	return p.EachValues(ctx, 0, p.Rows, func(b program.Block, v []float32) {
		if tile == [2]int{1, 1} { // the same result without tiles
			for i, x := range v {
				if s := float64(float64(x) * float64(x)); s-s == 0 {
					fn(b.First*b.Cols+i, square{s, 1})
				}
			}
			return
		}
		eachTile(b, tile, func(number int, rows, cols [2]int) {
			if s := tileSquare(v, b.Cols, rows, cols); s.sum-s.sum == 0 {
				fn(number, s)
			}
		})
	})
}

// eachTile cuts a block of rows into tiles, numbered over the whole matrix. Tiles at the far edges may be smaller.
func eachTile(b program.Block, size [2]int, fn func(number int, rows, cols [2]int)) {
	number := b.First / size[0] * ((b.Cols + size[1] - 1) / size[1])
	for i := 0; i < b.Rows; i += size[0] {
		for k := 0; k < b.Cols; k += size[1] {
			fn(number, [2]int{i, min(b.Rows, i+size[0])}, [2]int{k, min(b.Cols, k+size[1])})
			number++
		}
	}
}

func tileSquare(v []float32, stride int, rows, cols [2]int) square {
	var s square
	for i := rows[0]; i < rows[1]; i++ {
		for _, x := range v[i*stride+cols[0] : i*stride+cols[1]] {
			s.sum += float64(float64(x) * float64(x)) // the conversion prevents fusing, for equal results on all machines
		}
	}
	s.n = float64((rows[1] - rows[0]) * (cols[1] - cols[0]))
	return s
}

func zeroBlocks(b program.Block, z Zeros) {
	v := make([]float32, b.Rows*b.Cols)
	b.Format.Decode(v, b.Data)
	eachTile(b, *z.Block, func(number int, rows, cols [2]int) {
		mean := tileSquare(v, b.Cols, rows, cols).mean()
		if !(mean < z.Threshold || mean == z.Threshold && number < z.Ties) {
			return
		}
		for i := rows[0]; i < rows[1]; i++ {
			for k := cols[0]; k < cols[1]; k++ {
				b.Format.SetElem(b.Data, i*b.Cols+k, 0)
			}
		}
	})
}
