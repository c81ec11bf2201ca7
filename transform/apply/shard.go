package apply

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// chunkBytes is the approximate number of bytes of the result that a worker computes at a time.
const chunkBytes = 1 << 20

// chunk is a piece of a shard's data section.
type chunk struct {
	size int
	// fill computes the chunk's bytes in out. The returned slice may be shorter than out.
	fill    func(out []byte) ([]byte, error)
	reads   [][]byte // data of the source that fill reads; nil: unknown
	out     []byte
	err     error
	done    chan struct{}
	readers atomic.Int32 // number of readers (the writer, the digest) that still need out
}

func newChunk(size int, fill func(out []byte) ([]byte, error)) *chunk {
	return &chunk{size: size, fill: fill, done: make(chan struct{})}
}

// shardWriter writes one output shard.
type shardWriter struct {
	src      *weights.File      // the digest of this file is recorded
	result   *weights.File      // header of the result; src if the header does not change
	places   []quant.Place      // places of the shard's tensors in their weights
	programs []*program.Program // programs of these weights; nil for copied tensors
	extras   []extra
	workers  int
	done     func(bytes int64)
	small    map[quant.Place][]byte       // tensors that follow their codes
	rows     map[*quant.Weight]*codedRows // one tensor is sent, the other one follows
	kept     int                          // approximate bytes of small and rows
	at       map[quant.Place]int          // index of each place in places; nil until needed
}

// extra is a tensor that the source does not have.
type extra struct {
	info weights.Info
	data []byte
}

// newExtra returns a tensor [n] in F32 whose elements are all equal to value.
func newExtra(name string, n int, value float32) extra {
	e := extra{info: weights.Info{Name: name, DType: weights.F32, Shape: []int{n}, End: int64(4 * n)}}
	for range n {
		e.data = binary.LittleEndian.AppendUint32(e.data, math.Float32bits(value))
	}
	return e
}

// head returns the header of the result and the length of its data section in bytes. The header is the source's,
// unless tensors are added.
func (w *shardWriter) head() ([]byte, int64, error) {
	size := w.result.DataSize()
	if len(w.extras) == 0 {
		var head []byte
		err := weights.Guard(w.src.Path, func() error {
			head = bytes.Clone(w.result.Head())
			return nil
		})
		return head, size, err
	}
	infos := append([]weights.Info{}, w.result.Tensors...)
	for _, e := range w.extras {
		infos = append(infos, e.info)
		size += int64(len(e.data))
	}
	head, _, err := weights.EncodeHeader(infos, w.result.Metadata)
	return head, size, err
}

// output is a written shard that may not be flushed to the disk yet.
type output struct {
	file   weights.Output
	record plan.Shard
	head   string // SHA-256 of the header
}

// write writes the shard into a file that create opens. Workers compute rows, one goroutine writes them in order, and
// another one hashes source and result. The caller closes the file.
func (w *shardWriter) write(ctx context.Context, create func(ctx context.Context, src *weights.File, head []byte, dataLen int64) (weights.Output, error)) (out output, err error) {
	head, size, err := w.head()
	if err != nil {
		return out, weights.FileErrorf(w.src.Path, "%w", err)
	}
	f, err := create(ctx, w.src, head, size)
	if err != nil {
		return out, err
	}
	defer func() {
		if err != nil {
			f.Abort()
		}
	}()
	digests := newDigests(w.src, head, w.result.DataSize())
	g, ctx := errgroup.WithContext(ctx)
	work := make(chan *chunk)
	ordered, toHash := make(chan *chunk, 2*w.workers), make(chan *chunk, 2*w.workers)
	buffers := newBuffers()
	g.Go(func() error {
		defer close(work)
		defer close(ordered)
		return w.cut(ctx, buffers, work, ordered)
	})
	for range w.workers {
		g.Go(func() error {
			for c := range work {
				work := func() (err error) {
					c.out, err = c.fill(buffers.get(c.size))
					return err
				}
				if c.reads != nil {
					c.err = weights.GuardOf(w.src.Path, c.reads, work)
				} else {
					c.err = weights.Guard(w.src.Path, work)
				}
				close(c.done)
			}
			return nil
		})
	}
	g.Go(func() error {
		defer close(toHash)
		return w.drain(ctx, ordered, toHash, buffers, f)
	})
	g.Go(func() error {
		for c := range toHash {
			if err := digests.add(c.out); err != nil {
				return err
			}
			c.release(buffers)
		}
		return digests.end(ctx)
	})
	if err := errors.Join(g.Wait(), w.src.Unchanged()); err != nil {
		return out, err
	}
	for _, e := range w.extras {
		digests.result.Write(e.data)
		if _, err := f.Write(e.data); err != nil {
			return out, err
		}
	}
	sum := func(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }
	return output{f, plan.Shard{File: filepath.Base(w.src.Path), Source: sum(digests.source), Output: sum(digests.result)}, hex.EncodeToString(digestOf(head))}, nil
}

// release returns the buffer after its last reader is done.
func (c *chunk) release(buffers *buffers) {
	if c.readers.Add(-1) == 0 {
		buffers.put(c.out, c.size)
	}
}

// inFlight is the largest number of bytes of the result that are computed and not yet written, for any number of
// workers.
const inFlight = 32 << 20

// buffers is a pool of reused buffers. Together they hold at most inFlight bytes, or one chunk if that is larger.
type buffers struct {
	room *semaphore.Weighted
	free chan []byte
}

func newBuffers() *buffers {
	return &buffers{semaphore.NewWeighted(inFlight), make(chan []byte, inFlight/chunkBytes)}
}

// reserve waits until n bytes are free.
func (b *buffers) reserve(ctx context.Context, n int) error {
	return b.room.Acquire(ctx, min(int64(n), inFlight))
}

// get returns a buffer of n bytes. The caller must have reserved them.
func (b *buffers) get(n int) []byte {
	select {
	case buf := <-b.free:
		if cap(buf) >= n {
			return buf[:n]
		}
	default:
	}
	return make([]byte, n, max(n, chunkBytes))
}

// put returns a buffer and frees the n bytes that were reserved for it.
func (b *buffers) put(buf []byte, n int) {
	if cap(buf) <= chunkBytes {
		select {
		case b.free <- buf:
		default:
		}
	}
	b.room.Release(min(int64(n), inFlight))
}

// cut divides the shard's data section into chunks. It sends each chunk to the workers and to the writer, in order.
func (w *shardWriter) cut(ctx context.Context, buffers *buffers, work, ordered chan<- *chunk) error {
	send := func(c *chunk) error {
		if err := buffers.reserve(ctx, c.size); err != nil {
			return err
		}
		select {
		case ordered <- c:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case work <- c:
			return nil
		case <-ctx.Done():
			c.err = ctx.Err()
			close(c.done)
			return ctx.Err()
		}
	}
	sendCopy := func(b []byte) error {
		for len(b) > 0 {
			n := min(len(b), chunkBytes)
			if err := buffers.reserve(ctx, n); err != nil {
				return err
			}
			c := newChunk(n, nil)
			c.out = buffers.get(n)
			copy(c.out, b)
			close(c.done)
			select {
			case ordered <- c:
			case <-ctx.Done():
				return ctx.Err()
			}
			b = b[n:]
		}
		return nil
	}
	prepare, end := w.ahead(ctx)
	defer end()
	for i, place := range w.places {
		p := w.programs[i]
		if p == nil {
			for raw := place.Tensor().Data; len(raw) > 0; {
				n := min(len(raw), chunkBytes)
				if err := send(copied(raw[:n])); err != nil {
					return err
				}
				raw = raw[n:]
			}
			continue
		}
		if p.Coded() {
			var err error
			if rows := rowsOf(p, place); rows > 0 {
				err = w.sendRows(p, place, rows, send)
			} else {
				err = w.cutCodes(ctx, p, place, sendCopy)
			}
			if err != nil {
				return err
			}
			continue
		}
		if err := prepare(i); err != nil {
			return err
		}
		if err := w.cutProgram(p, place, send); err != nil {
			return err
		}
	}
	return nil
}

// mostKept is the largest number of bytes kept for tensors that follow later in the shard. Larger tensors are
// computed again.
const mostKept = 16 << 20

// follows reports whether n bytes of scales can be kept until their turn: the scales must follow their codes in the
// shard.
func (w *shardWriter) follows(scales, codes quant.Place, n int) bool {
	if w.at == nil {
		w.at = map[quant.Place]int{}
		for i, p := range w.places {
			w.at[p] = i
		}
	}
	at, here := w.at[scales]
	return here && at > w.at[codes] && w.programs[at] != nil && w.kept+n <= mostKept
}

// keep keeps the bytes of a tensor that follows its weight's codes in the shard.
func (w *shardWriter) keep(place quant.Place, b []byte) {
	if w.small == nil {
		w.small = map[quant.Place][]byte{}
	}
	w.small[place] = append(w.small[place], b...)
	w.kept += len(b)
}

// cutCodes sends one tensor of a quantised weight. The weight's matrices are computed for the codes and, without
// codes, again for the scales, which may lie elsewhere in the shard or in another shard. In a new layout the scales
// follow the codes.
func (w *shardWriter) cutCodes(ctx context.Context, p *program.Program, place quant.Place, sendCopy func(b []byte) error) error {
	q := place.Weight.Quantised
	if b, ok := w.small[place]; ok {
		delete(w.small, place)
		w.kept -= len(b)
		return sendCopy(b)
	}
	codes := q.Tensors[place.Part].Role == quant.Codes
	for expert := range q.Experts() {
		m, err := p.Recoded(ctx, expert, codes, w.workers)
		if err != nil {
			return err
		}
		err = q.Encode(m, expert, func(part int, _ int64, b []byte) error {
			if part == place.Part {
				return sendCopy(b)
			}
			if other := (quant.Place{Weight: place.Weight, Part: part}); codes && (made(place) || w.follows(other, place, len(b))) {
				w.keep(other, b)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// preparedAhead is the number of layers that are prepared before their turn if a device computes them. Meanwhile the
// host loads and encodes values.
const preparedAhead = 3

// ahead returns a function that prepares the program of a place, in the order of places. At the same time, the
// device's next programs are prepared. end waits for programs in preparation.
func (w *shardWriter) ahead(ctx context.Context) (prepare func(i int) error, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	started := map[int]chan error{}
	start := func(i int) {
		done := make(chan error, 1)
		started[i] = done
		running.Go(func() { done <- w.programs[i].Prepare(ctx, w.workers) })
	}
	prepare = func(i int) error {
		if started[i] == nil {
			start(i)
		}
		for next, n := i+1, 0; next < len(w.programs) && n < preparedAhead; next++ {
			if p := w.programs[next]; p != nil && p.OnDevice() {
				n++
				if started[next] == nil {
					start(next)
				}
			}
		}
		return <-started[i]
	}
	return prepare, func() { cancel(); running.Wait() }
}

// cutProgram divides one weight's data in the shard into chunks and sends them. The weight's program must be
// prepared.
func (w *shardWriter) cutProgram(p *program.Program, place quant.Place, send func(*chunk) error) error {
	unit := max(p.Unit, place.Weight.Unit) // both are powers of two
	step := max(1, chunkBytes/max(1, p.RowBytes())/unit) * unit
	var sent []*chunk
	for first := 0; first < p.Rows && p.Cols > 0; first += step {
		c := computed(p, place.Part, first, min(step, p.Rows-first))
		if err := send(c); err != nil {
			return err
		}
		sent = append(sent, c)
	}
	if p.HoldsResult() { // the result is as large as the weight: free it before the next weight
		for _, c := range sent {
			<-c.done
		}
		p.Release()
	}
	return nil
}

// copied returns a chunk of unchanged bytes. The chunk has a copy, so a read fault of the mapped source is an error
// here.
func copied(raw []byte) *chunk {
	c := newChunk(len(raw), func(out []byte) ([]byte, error) { return out[:copy(out, weights.Need(raw))], nil })
	c.reads = [][]byte{raw}
	return c
}

// computed returns a chunk with rows [first, first+rows) of a program's result, encoded as one tensor of the weight
// stores them.
func computed(p *program.Program, part, first, rows int) *chunk {
	c := newChunk(rows*p.RowBytes(), func(out []byte) ([]byte, error) {
		p.Run(out, first, rows)
		stored := 0 // bytes of this tensor; at most as many as those of the values
		err := p.Source.StoreRows(first, out, func(of int, _ int64, b []byte) error {
			if of == part {
				stored += copy(out[stored:], b)
			}
			return nil
		})
		return out[:stored], err
	})
	if p.Source.Quantised == nil {
		for _, t := range p.Source.Parts {
			c.reads = append(c.reads, t.Data)
		}
	}
	return c
}

// drain writes finished chunks in order and sends them to the digest.
func (w *shardWriter) drain(ctx context.Context, ordered <-chan *chunk, toHash chan<- *chunk, buffers *buffers, f io.Writer) error {
	for c := range ordered {
		select {
		case <-c.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if c.err != nil {
			return c.err
		}
		c.readers.Store(2)
		select {
		case toHash <- c:
		case <-ctx.Done():
			return ctx.Err()
		}
		if _, err := f.Write(c.out); err != nil {
			return err
		}
		w.done(int64(len(c.out)))
		c.release(buffers)
	}
	return ctx.Err()
}
