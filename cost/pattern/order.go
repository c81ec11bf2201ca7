package pattern

import (
	"context"
	"slices"

	"github.com/lowtoggle/lowtoggle/weights"
)

// ordering maps elements to keys that are ordered as unsigned numbers: by value, −0 before 0, and NaN beyond the
// infinity of its sign. No branch depends on an element, because signs are random.
type ordering struct {
	sign uint32
	rest uint32 // bits to invert if the sign is set; 0 in two's complement
	top  int    // position of the sign
}

func newOrdering(f weights.Format) ordering {
	if f.IsFloat() {
		return ordering{f.SignMask(), f.SignMask() - 1, f.Bits - 1}
	}
	return ordering{f.SignMask(), 0, f.Bits - 1}
}

func (o ordering) key(b uint32) uint32     { return b ^ (o.sign | o.rest&-(b>>o.top)) }
func (o ordering) element(k uint32) uint32 { return k ^ (o.sign | o.rest&(k>>o.top-1)) }

// sortLowest moves the n lowest elements of data to its front, in ascending order. The others follow in their order.
// If only some of several equal elements belong to the lowest, the first ones are moved.
func sortLowest(ctx context.Context, f weights.Format, data []byte, n int) error {
	if n == 0 {
		return nil
	}
	lowest := byKeys
	if f.Bits <= 16 && len(data)/(f.Bits/8) >= 1<<f.Bits {
		lowest = byCounting
	}
	last, ties, front, err := lowest(ctx, f, data, n)
	if err != nil {
		return err
	}
	if err := moveRest(ctx, f, data, last, ties); err != nil {
		return err
	}
	return front(data)
}

// byCounting counts the elements of each key. last is the highest of the n lowest keys. ties is the number of
// elements with that key that are not among the lowest. front writes the lowest.
func byCounting(ctx context.Context, f weights.Format, data []byte, n int) (last uint32, ties int, front func([]byte) error, err error) {
	o, counts := newOrdering(f), make([]int, 1<<f.Bits)
	err = inPieces(ctx, len(data)/(f.Bits/8), func(from, to int) {
		for i := from; i < to; i++ {
			counts[o.key(f.Elem(data, i))]++
		}
	})
	if err != nil {
		return 0, 0, nil, err
	}
	for left := n; ; last++ {
		if left -= counts[last]; left <= 0 {
			return last, -left, func(data []byte) error { return writeCounted(ctx, f, data, counts, n) }, nil
		}
	}
}

func writeCounted(ctx context.Context, f weights.Format, data []byte, counts []int, n int) error {
	o, k := newOrdering(f), uint32(0)
	return inPieces(ctx, n, func(from, to int) {
		for i := from; i < to; i++ {
			for counts[k] == 0 {
				k++
			}
			counts[k]--
			f.SetElem(data, i, o.element(k))
		}
	})
}

// byKeys is byCounting for formats with more keys than elements. It sorts a copy of all keys.
func byKeys(ctx context.Context, f weights.Format, data []byte, n int) (last uint32, ties int, front func([]byte) error, err error) {
	o, keys := newOrdering(f), make([]uint32, len(data)/(f.Bits/8))
	err = inPieces(ctx, len(keys), func(from, to int) {
		for i := from; i < to; i++ {
			keys[i] = o.key(f.Elem(data, i))
		}
	})
	if err == nil {
		err = radixSort(ctx, keys, f.Bits)
	}
	if err != nil {
		return 0, 0, nil, err
	}
	last = keys[n-1]
	for _, k := range keys[n:] {
		if k != last {
			break
		}
		ties++
	}
	return last, ties, func(data []byte) error {
		return inPieces(ctx, n, func(from, to int) {
			for i, k := range keys[from:to] {
				f.SetElem(data, from+i, o.element(k))
			}
		})
	}, nil
}

// moveRest moves the elements above last, and the last ties elements equal to last, to the end of data in their
// order. It goes backwards and writes every element, so it overwrites only elements that it has read.
func moveRest(ctx context.Context, f weights.Format, data []byte, last uint32, ties int) error {
	o, n := newOrdering(f), len(data)/(f.Bits/8)
	end := n // end of the remaining room
	return inPieces(ctx, n, func(from, to int) {
		for i := n - 1 - from; i >= n-to; i-- {
			b := f.Elem(data, i)
			k := o.key(b)
			f.SetElem(data, end-1, b)
			if k == last && ties > 0 {
				ties--
				end--
			}
			if k > last {
				end--
			}
		}
	})
}

// radixSort sorts keys of the given number of bits, digit by digit from the lowest.
func radixSort(ctx context.Context, keys []uint32, bits int) error {
	const digit = 11
	if len(keys) < 1<<digit {
		slices.Sort(keys)
		return nil
	}
	from, to := keys, make([]uint32, len(keys))
	for shift := 0; shift < bits; shift += digit {
		var at [1<<digit + 1]int
		err := inPieces(ctx, len(from), func(i, j int) {
			for _, k := range from[i:j] {
				at[k>>shift&(1<<digit-1)+1]++
			}
		})
		if err != nil {
			return err
		}
		for d := range 1 << digit {
			at[d+1] += at[d]
		}
		err = inPieces(ctx, len(from), func(i, j int) {
			for _, k := range from[i:j] {
				d := k >> shift & (1<<digit - 1)
				to[at[d]] = k
				at[d]++
			}
		})
		if err != nil {
			return err
		}
		from, to = to, from
	}
	copy(keys, from)
	return nil
}

// inPieces calls do for 0 to n in pieces, until the context is cancelled.
func inPieces(ctx context.Context, n int, do func(from, to int)) error {
	for from := 0; from < n; from += piece {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		do(from, min(from+piece, n))
	}
	return nil
}
