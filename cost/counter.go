package cost

import (
	"fmt"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Counter counts the activity of a tensor that arrives row by row and never lies in memory as a
// whole. It keeps a copy of the last row. It is an io.Writer, not safe for concurrent use.
type Counter struct {
	lanes     *lanes
	cols      int
	rows      int
	tally     tally
	firstZero uint64 // zeros in the first row
	last      []byte
}

// NewCounter counts rows of cols elements of format f; for a vector cols is 1.
func NewCounter(f weights.Format, cols int) *Counter {
	return &Counter{lanes: newLanes(f), cols: cols}
}

// Write counts the next rows, as many as there are bytes for. It fails, counting nothing, where
// they are not whole rows. The bytes are not kept.
func (c *Counter) Write(rows []byte) (int, error) {
	rowBytes := c.cols * c.lanes.size
	if len(rows) == 0 {
		return 0, nil
	}
	if rowBytes <= 0 || len(rows)%rowBytes != 0 {
		return 0, fmt.Errorf("counting activity after row %d: %d bytes are not whole rows of %d %s elements (%d bytes each)",
			c.rows, len(rows), c.cols, c.lanes.format.DType, rowBytes)
	}
	if c.rows == 0 {
		c.firstZero = c.lanes.zerosIn(rows[:rowBytes])
		c.tally.addSpan(c.lanes, rows, rowBytes, 0, len(rows))
	} else {
		e := c.lanes.size
		c.tally.add(c.lanes, rows[:e], c.last[rowBytes-e:], c.last[:e])
		c.tally.add(c.lanes, rows[e:rowBytes], rows[:rowBytes-e], c.last[e:])
		c.tally.addSpan(c.lanes, rows, rowBytes, rowBytes, len(rows))
	}
	c.last = append(c.last[:0], rows[len(rows)-rowBytes:]...)
	c.rows += len(rows) / rowBytes
	return len(rows), nil
}

// Activity is that of all rows written so far.
func (c *Counter) Activity() Activity {
	return c.tally.activity(c.lanes, c.rows, c.cols, c.firstZero, c.lanes.zerosIn(c.last))
}

// addSpan counts bytes [lo, hi) of a tensor that lies in memory as a whole. Both are multiples of
// an element's size.
func (t *tally) addSpan(l *lanes, data []byte, rowBytes, lo, hi int) {
	if lo == 0 && hi > 0 {
		t.add(l, data[:l.size], nil, nil)
		lo = l.size
	}
	if end := min(hi, rowBytes); lo < end {
		t.add(l, data[lo:end], data[lo-l.size:end-l.size], nil)
		lo = end
	}
	if lo < hi {
		t.add(l, data[lo:hi], data[lo-l.size:hi-l.size], data[lo-rowBytes:hi-rowBytes])
	}
}

// zerosIn is the number of zeros in data.
func (l *lanes) zerosIn(data []byte) uint64 {
	var t tally
	t.add(l, data, nil, nil)
	return t.zeros
}

// activity is what the tally of a whole tensor says, given the zeros of its first and last rows.
// Runs and borders follow from pairs: a run starts at each zero that no zero precedes, and each
// vertical pair has two zeros, one (a border) or none.
func (t *tally) activity(l *lanes, rows, cols int, firstZeros, lastZeros uint64) Activity {
	if rows == 0 {
		cols = 0 // an empty tensor is 0 by 0, however it came
	}
	return Activity{
		DType: l.format.DType, Rows: rows, Cols: cols, Elements: uint64(rows) * uint64(cols),
		RowToggles: t.rows, MemoryToggles: t.memory, Ones: t.ones,
		Zeros:       t.zeros,
		ZeroRuns:    t.zeros - t.zerosBefore,
		ZeroBorders: 2*t.zeros - firstZeros - lastZeros - 2*t.zerosAbove,
		NaN:         t.nan, Inf: t.inf, Subnormal: t.subnormal,
	}
}
