package verify

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// leastWindow is how many bytes may be in memory at a time, if no comparison needs more.
const leastWindow = 64 << 20

// window bounds the memory of tensors in object stores. What a comparison has read stays in memory until every comparison has ended
// that ran at its end (see [weights.Need]), so its bytes count until then. A nil window holds nothing back.
type window struct {
	most int64
	room *semaphore.Weighted

	mu      sync.Mutex
	begun   int
	running map[int]int64 // bytes of the comparisons that run, by their number in the order of beginning
	ended   []endedPair   // those whose bytes still count, in the order of ending
}

// endedPair is a comparison that has ended.
type endedPair struct {
	bytes int64
	begun int // how many had begun by then
}

// newWindow returns a window for comparisons of at most so many bytes each.
func newWindow(largest int64) *window {
	most := max(largest, leastWindow)
	return &window{most: most, room: semaphore.NewWeighted(most), running: map[int]int64{}}
}

// enter waits until there is room for a comparison of n bytes. leave notes its end.
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
	whole(q) // the codes' comparison reads all tensors of the weight
	if after, ok := c.result.Weight(q.Name); ok {
		whole(after)
	}
	return n
}
