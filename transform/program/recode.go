package program

import (
	"context"
	"math"
	"math/bits"
	"sync"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/codebytes"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Recoding holds the rules by which the steps of a plan choose a quantised weight's codes and scales. Each operation
// sets its own fields. The rules need no lists in a plan, because they apply to each scale and its codes separately.
type Recoding struct {
	// PositiveZero replaces every −0 by +0.
	PositiveZero bool
	// Rescale is true if new scales are chosen. FP8: each scale is multiplied by a power of two, so that the root
	// mean square of its codes is about 2^Bits times the smallest code. Other formats: each scale becomes the value
	// of least error with at most Bits mantissa bits.
	Rescale bool
	Bits    int
	// Zeroed is the number of low bits that are zero in every code: mantissa bits of floats, or bits of the distance
	// to the zero point of integers.
	Zeroed int
	// Grid > 0 makes codes multiples of a power of two near σ/Grid, where σ is the root mean square of a scale's codes.
	Grid float64
	// Lambda > 0 chooses codes by error and energy, like [rounding.Codes]. Rates are the energies by significant
	// bits.
	Lambda float64
	Rates  rounding.Rates
}

// merge adds the rules of another operation.
func (r Recoding) merge(o Recoding) Recoding {
	r.PositiveZero = r.PositiveZero || o.PositiveZero
	if o.Rescale {
		r.Rescale, r.Bits = true, o.Bits
	}
	r.Zeroed = max(r.Zeroed, o.Zeroed)
	r.Grid = max(r.Grid, o.Grid)
	if o.Lambda > 0 {
		r.Lambda, r.Rates = o.Lambda, o.Rates
	}
	return r
}

// recoder chooses the codes and scales of one matrix.
type recoder struct {
	Recoding
	operand weights.DType
	src     *quant.Matrix
	out     *quant.Matrix
	// target writes the target values of row n; nil: the targets are src's values.
	target func(dst []float32, n int)
	weight []float64 // weights of squared errors, by column; nil: all 1
	scale  float64   // see rounding.Loss.Scale; required with Lambda
	groups [][]int32 // columns of each group, if src.Group is set

	*books
	which []uint16 // the index of each scale's book
}

// books are the code books of one recoder, or of several recoders without an energy term.
type books struct {
	mu    sync.Mutex
	list  []*rounding.CodeBook
	index map[bookKey]uint16
}

func newBooks() *books { return &books{index: map[bookKey]uint16{}} }

// bookKey identifies the allowed codes under a scale: multiples of 2^step, counted from a zero point for integers.
type bookKey struct {
	step, zero int
}

const (
	noStep   = math.MinInt32
	onlyZero = math.MaxInt32 // no other code is a multiple
)

// newRecoder returns a recoder that writes new codes to dst, which may be src's codes.
func newRecoder(r Recoding, operand weights.DType, src *quant.Matrix, dst []byte) *recoder {
	c := &recoder{Recoding: r, operand: operand, src: src, books: newBooks()}
	out := *src
	out.Codes = dst
	out.Scales = append([]float32(nil), src.Scales...)
	c.out = &out
	c.which = make([]uint16, len(src.Scales))
	if src.Group != nil {
		c.groups = make([][]int32, src.Columns())
		for k, g := range src.Group {
			c.groups[g] = append(c.groups[g], int32(k))
		}
	}
	return c
}

// isFloat reports whether codes are floating-point numbers.
func (c *recoder) isFloat() bool { return c.src.Book.Zero == 0 && c.src.Zeros == nil }

// zeroAt returns the zero point at a place of the scales.
func (c *recoder) zeroAt(place int) float32 {
	if c.src.Zeros == nil {
		return float32(c.src.Book.Zero)
	}
	return float32(c.src.Zeros[place])
}

// effective returns the factor of codes under a stored scale.
func (c *recoder) effective(s float32) float32 {
	if c.src.Divide {
		return s / c.src.Global
	}
	return s * c.src.Global
}

// bookOf returns the number of the book for a step and a zero point.
func (w *recodeWorker) bookOf(step int, zero float32) uint16 {
	const most = 32 // larger steps, or much smaller ones, have the same books
	k := bookKey{noStep, 0}
	if step != noStep {
		k.step = min(max(step, -most), most)
	}
	if !w.isFloat() {
		k.step = min(max(0, step, w.Zeroed), 8)
		k.zero = int(zero) & (1<<k.step - 1)
	}
	if i, ok := w.known[k]; ok {
		return i
	}
	i := w.recoder.bookOf(k)
	w.known[k] = i
	return i
}

func (c *recoder) bookOf(k bookKey) uint16 {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := c.index[k]
	if ok {
		return i
	}
	b := rounding.NewCodeBook(c.src.Book.Values, func(code byte) bool { return c.allowed(code, k) })
	if c.Lambda > 0 {
		b = b.Priced(c.price, c.Lambda)
	}
	i = uint16(len(c.list))
	c.list, c.index[k] = append(c.list, b), i
	return i
}

func (b *books) book(i uint16) *rounding.CodeBook { return b.all()[i] }

func (b *books) all() []*rounding.CodeBook {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.list
}

func (c *recoder) allowed(code byte, k bookKey) bool {
	if !c.isFloat() {
		return (int(code)-k.zero)&(1<<k.step-1) == 0
	}
	if code&(1<<c.Zeroed-1) != 0 {
		return false
	}
	if k.step == noStep {
		return true
	}
	v := math.Ldexp(float64(c.src.Book.Values[code]), -k.step)
	return v == math.Trunc(v)
}

// price returns the energy of a value from its significant bits in a tensor core.
func (c *recoder) price(v, scale, zero float32) float64 {
	x := v - zero
	if c.operand == weights.BF16 {
		if c.src.Divide {
			scale *= c.src.Global
		} else {
			scale /= c.src.Global
		}
		f, _ := weights.BF16.Format()
		x = f.Value(f.FromValue(x * f.Value(f.FromValue(scale))))
	}
	most := len(c.Rates.Significant) - 1
	if x == 0 {
		return c.Rates.Significant[0]
	}
	if c.operand == weights.I8 {
		return c.Rates.Significant[min(most, bits.Len(uint(math.Abs(float64(x))))-bits.TrailingZeros(uint(math.Abs(float64(x)))))]
	}
	mant := math.Float32bits(x)&(1<<23-1) | 1<<23
	return c.Rates.Significant[min(most, 24-bits.TrailingZeros32(mant))]
}

// recodeElems is the approximate number of codes that a task chooses.
const recodeElems = 1 << 17

// choose chooses the codes after the scales. f feeds errors back into later columns; nil: every code is chosen alone.
func (c *recoder) choose(ctx context.Context, f *rounding.Factor, workers int) error {
	if f != nil {
		return c.feedback(ctx, f, workers)
	}
	return c.chooseAlone(ctx, 0, c.src.N, workers)
}

// chooseAlone chooses each code of rows [from, end) by itself.
func (c *recoder) chooseAlone(ctx context.Context, from, end, workers int) error {
	m := c.src
	return c.eachBlock(ctx, workers, func(w *recodeWorker, first, last int) error {
		if first, last = max(first, from), min(last, end); first >= last {
			return nil
		}
		if c.target == nil {
			c.translate(w, first, last)
			return nil
		}
		choose, err := c.chooser().Row(m.N, m.K)
		if err != nil {
			return err
		}
		t := make([]float32, m.K)
		for n := first; n < last; n++ {
			c.target(t, n)
			choose(c.out.Codes[n*m.K:(n+1)*m.K], n, t)
		}
		return nil
	})
}

// eachBlock calls do, in parallel, with ranges of rows that share no scale with other rows.
func (c *recoder) eachBlock(ctx context.Context, workers int, do func(w *recodeWorker, first, last int) error) error {
	m := c.src
	step := max(1, recodeElems/max(1, m.K*m.Block[0])) * m.Block[0]
	blocks := (m.N + step - 1) / step
	free := make(chan *recodeWorker, blocks) // a sync.Pool would keep the matrix in memory for two garbage collections
	return parallel.Run(ctx, blocks, workers, func(_ context.Context, i int) error {
		var w *recodeWorker
		select {
		case w = <-free:
		default:
			w = &recodeWorker{recoder: c, tables: map[tableKey]*codeTable{}, known: map[bookKey]uint16{}}
		}
		defer func() { free <- w }()
		return do(w, i*step, min((i+1)*step, m.N))
	})
}

// chooser returns the chooser of new codes under the new scales.
func (c *recoder) chooser() *rounding.Codes {
	m := c.out
	r := &rounding.Codes{Books: c.all(), Which: c.which, Scales: make([]float32, len(m.Scales)), Zeros: m.Zeros, Zero: float32(m.Book.Zero),
		Rows: m.Block[0], Groups: m.Columns(), Group: m.Group, Lambda: c.Lambda, Scale: c.scale}
	for i, s := range m.Scales {
		if r.Scales[i] = c.effective(s); r.Scales[i] == 0 {
			r.Scales[i] = math.SmallestNonzeroFloat32
		}
	}
	if r.Group == nil {
		r.Group = make([]int32, m.K)
		for k := range r.Group {
			r.Group[k] = int32(k / m.Block[1])
		}
	}
	return r
}

// feedback chooses codes column by column with error feedback.
func (c *recoder) feedback(ctx context.Context, f *rounding.Factor, workers int) error {
	m := c.src
	w, err := c.targets(ctx, workers)
	if err != nil {
		return err
	}
	r := c.chooser()
	q, err := rounding.Round(ctx, w, f, r, rounding.Options{Workers: workers})
	if err != nil {
		return err
	}
	parallel.Do(m.N, workers, func(n int) {
		codes := c.out.Codes[n*m.K : (n+1)*m.K]
		for k, v := range q.Row(n) {
			codes[k] = r.Code(n, k, v)
		}
	})
	return nil
}

// targets returns the values that the codes should represent.
func (c *recoder) targets(ctx context.Context, workers int) (sgemm.Matrix, error) {
	m := c.src
	w := sgemm.Dense(m.N, m.K, nil)
	err := parallel.Run(ctx, m.N, workers, func(_ context.Context, n int) error {
		if c.target != nil {
			c.target(w.Row(n), n)
		} else {
			m.Row(w.Row(n), n)
		}
		return nil
	})
	return w, err
}

// recodeWorker is the state of one goroutine.
type recodeWorker struct {
	*recoder
	tables map[tableKey]*codeTable
	known  map[bookKey]uint16
	last   tableKey
	table  *codeTable
	values []float32 // targets of a row, or of all rows of a block
	block  int       // first row of the block, plus 1; 0: none
	// pairs are targets in units of the old scale, minus the zero point.
	pairs []rounding.Sample
	near  rounding.Nearest
	// squares is the sum of the squares of the counted targets under a scale. counted is their number.
	squares, counted float64
	squareTable      *squares
}

// translate maps codes to new codes by one table for each scale.
func (c *recoder) translate(w *recodeWorker, first, last int) {
	m, columns := c.src, c.src.Columns()
	if m.Group != nil {
		c.translateGroups(w, first, last)
		return
	}
	for n := first; n < last; {
		end := min((n/m.Block[0]+1)*m.Block[0], last)
		for g := range columns {
			b := c.blockOf(n, end, g)
			codebytes.Translate(c.out.Codes[n*m.K+g*m.Block[1]:], b, &w.tableAt(n/m.Block[0]*columns+g).code)
		}
		n = end
	}
}

// translateGroups is translate for weights whose inputs have group indices.
func (c *recoder) translateGroups(w *recodeWorker, first, last int) {
	m := c.src
	for n := first; n < last; n++ {
		from, to := m.Codes[n*m.K:(n+1)*m.K], c.out.Codes[n*m.K:(n+1)*m.K]
		for g, list := range c.groups {
			t := w.tableAt(n/m.Block[0]*m.Columns() + g)
			for _, k := range list {
				to[k] = t.code[from[k]]
			}
		}
	}
}

// blockOf returns the source's codes in rows [first, last) and in group g.
func (c *recoder) blockOf(first, last, g int) codebytes.Block {
	m := c.src
	from := g * m.Block[1]
	return codebytes.Block{Data: m.Codes[first*m.K+from:], Rows: last - first, Cols: min(m.Block[1], m.K-from), Stride: m.K}
}

// codeTable maps each old code to its best new code, with the cost of that code: the squared error in units of the
// new scale or, with Lambda, the relative error plus the energy.
type codeTable struct {
	code [256]byte
	cost [256]float32
}

type tableKey struct {
	ratio, scale, zero float32 // ratio: old scale over new scale; scale: the new scale, if there is an energy term
	book               uint16
}

// tableAt returns the table for a place of the scales.
func (w *recodeWorker) tableAt(place int) *codeTable {
	return w.tableOf(w.src.Scales[place], w.out.Scales[place], w.zeroAt(place), w.which[place])
}

func (w *recodeWorker) tableOf(old, scale, zero float32, book uint16) *codeTable {
	k := tableKey{old / scale, 0, zero, book}
	if !(scale > 0) {
		k.ratio = 1
	}
	if w.Lambda > 0 {
		k.scale = w.effective(scale)
	}
	if w.table != nil && k == w.last {
		return w.table
	}
	t, ok := w.tables[k]
	if !ok {
		const most = 1 << 12
		if len(w.tables) >= most {
			clear(w.tables)
		}
		t = w.newTable(k)
		w.tables[k] = t
	}
	w.last, w.table = k, t
	return t
}

func (w *recodeWorker) newTable(k tableKey) *codeTable {
	t, b := &codeTable{}, w.book(k.book)
	price, weight := b.Prices(k.scale, k.zero), float32(1)
	if price != nil {
		weight = float32(min(w.scale*float64(k.scale)*float64(k.scale), math.MaxFloat32))
	}
	values := w.src.Book.Values
	for c, v := range values {
		if v-v != 0 {
			t.code[c] = byte(c)
			continue
		}
		x := float32((v-k.zero)*k.ratio) + k.zero
		code, y := b.Best(x, k.zero, weight, price)
		if values[code] == v && !w.PositiveZero { // −0 equals 0
			code = byte(c)
		}
		d := x - y
		t.code[c], t.cost[c] = code, float32(float32(d*d)*weight)
		if price != nil {
			t.cost[c] += w.priceOf(y, k)
		}
	}
	return t
}

func (w *recodeWorker) priceOf(v float32, k tableKey) float32 {
	return float32(w.Lambda * w.price(v, k.scale, k.zero))
}
