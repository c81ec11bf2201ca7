package verify

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// leastWindow is the number of bytes that may always be in memory, even if every comparison needs less.
const leastWindow = 64 << 20

// window limits the memory of tensors in object stores. The data of a comparison stays in memory until all comparisons
// that were running at its end have ended (see [weights.Need]). Its bytes count until then. A nil window sets no
// limit.
type window struct {
	most int64
	room *semaphore.Weighted

	mu      sync.Mutex
	begun   int
	running map[int]int64 // bytes of the running comparisons, by number in the order of beginning
	ended   []endedPair   // comparisons whose bytes still count, in the order of ending
}

// endedPair is a comparison that has ended.
type endedPair struct {
	bytes int64
	begun int // number of comparisons begun until then
}

// newWindow returns a window for comparisons of at most largest bytes each.
func newWindow(largest int64) *window {
	most := max(largest, leastWindow)
	return &window{most: most, room: semaphore.NewWeighted(most), running: map[int]int64{}}
}

// enter waits until there is room for a comparison of n bytes. The caller calls leave at the comparison's end.
func (w *window) enter(ctx context.Context, n int64) (leave func(), err error) {
	if w == nil {
		return func() {}, nil
	}
	n = min(n, w.most)
	if err := w.room.Acquire(ctx, n); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	number := w.begun
	w.begun++
	w.running[number] = n
	return func() { w.leave(number) }, nil
}

func (w *window) leave(number int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = append(w.ended, endedPair{w.running[number], w.begun})
	delete(w.running, number)
	oldest := w.begun
	for n := range w.running {
		oldest = min(oldest, n)
	}
	for len(w.ended) > 0 && w.ended[0].begun <= oldest {
		w.room.Release(w.ended[0].bytes)
		w.ended = w.ended[1:]
	}
}

// stored returns the bytes of a comparison's tensors in object stores.
func (c *claims) stored(a, b weights.Tensor) (n int64) {
	add := func(t weights.Tensor) {
		if weights.IsURL(t.File) {
			n += t.Size()
		}
	}
	whole := func(q *quant.Quantised) {
		for _, t := range q.Tensors {
			add(t.Tensor)
		}
	}
	if made := c.madeOf(a.Name); made != nil {
		add(a)
		whole(made)
		return n
	}
	q, ok := c.quantised.WeightOf(a.Name)
	if !ok {
		add(a)
		add(b)
		return n
	}
	whole(q) // the comparison of the codes reads all tensors of the weight
	if after, ok := c.result.Weight(q.Name); ok {
		whole(after)
	}
	return n
}
