//go:build unix

package weights

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
)

// requests records the requests for a file in a store, in units of some blocks: "first+count".
type requests struct {
	unit int64 // bytes
	mu   sync.Mutex
	list []string
	fail error
}

func (q *requests) read(_ context.Context, p []byte, at int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = append(q.list, fmt.Sprintf("%d+%d", at/q.unit, (int64(len(p))+q.unit-1)/q.unit))
	for i := range p {
		p[i] = byte((at + int64(i)) / q.unit)
	}
	return q.fail
}

// since returns the requests of blocks since the last call, once all have been answered.
func (q *requests) since(r *remote) string {
	r.busy.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	slices.SortFunc(q.list, func(a, b string) int { // by block
		var i, j int
		fmt.Sscan(strings.Split(a, "+")[0], &i)
		fmt.Sscan(strings.Split(b, "+")[0], &j)
		return i - j
	})
	text := strings.Join(q.list, " ")
	q.list = nil
	return text
}

func remoteOf(t *testing.T, q *requests, size int64) *remote {
	t.Helper()
	r, err := newRemote(t.Context(), size, q.read)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if r.blocks != nil {
			r.close()
		}
	})
	return r
}

// TestRequests: for a caller that reads in order, large requests read ahead, and each block is requested once. For a caller
// that reads in random order, only the needed blocks are requested.
func TestRequests(t *testing.T) {
	const unit, units = requestBytes / 16, 200
	q := &requests{unit: unit}
	r := remoteOf(t, q, units*unit-100)
	need := func(first, last int, want string) {
		t.Helper()
		b := r.memory[first*unit : min((last+1)*unit, len(r.memory))]
		if err := Guard("file", func() error {
			for i, v := range Need(b) {
				if v != byte(first+i/unit) {
					return fmt.Errorf("byte %d of units %d to %d is %d", i, first, last, v)
				}
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		if got := q.since(r); got != want {
			t.Errorf("units %d to %d: %s, want %s", first, last, got, want)
		}
	}
	need(150, 150, "150+1") // here and there
	need(100, 101, "100+2")
	need(0, 3, "0+4")
	need(100, 101, "")
	need(0, 3, "")
	// A read in order causes requests of 16 units until 96 units are read ahead. The next request follows when 16 units fit.
	need(4, 4, "4+16 20+16 36+16 52+16 68+16 84+16")
	for n := 5; n < 22; n++ {
		need(n, n, "")
	}
	need(22, 22, "102+16 118+1") // unit 102 is 80 ahead, so that a whole request is missing
	need(23, 40, "119+16 135+2")
	need(41, 160, "137+13 151+16 167+16 183+16 199+1")
	need(161, 199, "")
	need(60, 60, "")
	if len(r.blocks) != 160*unit/blockBytes || HeldBytes() != spareBytes-100 { // 40 MiB, with the short last block
		t.Errorf("%d blocks and %d bytes are in memory", len(r.blocks), HeldBytes())
	}
	Need(nil)
	Need(make([]byte, 10)) // memory of another kind
	if got := q.since(r); got != "" {
		t.Errorf("other memory is asked for: %s", got)
	}
	if r.close(); HeldBytes() != 0 || len(pages.files) != 0 || pages.read.Len() != 0 {
		t.Errorf("after closing %d bytes of %d files are held", HeldBytes(), len(pages.files))
	}
}

// TestSamplesReadLittle: samples at the end of a tensor and the start of the next are neighbours, but do not start reading
// ahead.
func TestSamplesReadLittle(t *testing.T) {
	q := &requests{unit: blockBytes}
	r := remoteOf(t, q, 100*blockBytes)
	for n := 0; n < 60; n += 10 {
		Need(r.memory[n*blockBytes:][:100])
		Need(r.memory[(n+1)*blockBytes:][:100])
		if got, want := q.since(r), fmt.Sprintf("%d+1 %d+1", n, n+1); got != want {
			t.Errorf("samples at block %d read %s, want %s", n, got, want)
		}
	}
}

// TestSampledRequests: the parts of a sample are requested at once, and long parts also cause no reading ahead. After the end
// of the sampling, reading in order reads ahead again.
func TestSampledRequests(t *testing.T) {
	const unit = requestBytes / 16
	q := &requests{unit: unit}
	r := remoteOf(t, q, 400*unit)
	at := func(first, n int) []byte { return r.memory[first*unit:][:n*unit] }
	end := Sampled(at(100, 200), at(100, 6), at(150, 2), at(156, 40))
	if got, want := q.since(r), "100+6 150+2 156+16 172+16 188+8"; got != want {
		t.Errorf("the sample read %s, want %s", got, want)
	}
	for n := 100; n < 110; n++ {
		Need(at(n, 1))
	}
	if got, want := q.since(r), "106+1 107+1 108+1 109+1"; got != want {
		t.Errorf("a reader in order in sampled data read %s, want %s", got, want)
	}
	Need(at(150, 10))
	if got, want := q.since(r), "152+4"; got != want {
		t.Errorf("between parts of the sample, %s was read, want %s", got, want)
	}
	end()
	end()
	Need(at(200, 10))
	if got, want := q.since(r), "200+10"; got != want {
		t.Errorf("after the sample, %s was read, want %s", got, want)
	}
	Need(at(210, 1))
	if got := q.since(r); !strings.HasPrefix(got, "210+16 226+16") {
		t.Errorf("a reader in order after the sample read %s", got)
	}
}

// TestPrefetchTakesLittle: data that is prefetched and not yet needed takes at most half of spareBytes. Once it is needed,
// more can be prefetched.
func TestPrefetchTakesLittle(t *testing.T) {
	spare := spareBytes
	spareBytes = 10 * blockBytes
	defer func() { spareBytes = spare }()
	q := &requests{unit: blockBytes}
	r := remoteOf(t, q, 100*blockBytes)
	block := func(n int) []byte { return r.memory[n*blockBytes:][:blockBytes] }
	Prefetch(r.memory[:20*blockBytes])
	if got, want := q.since(r), "0+5"; got != want {
		t.Errorf("prefetched %s, want %s", got, want)
	}
	Prefetch(block(50))
	Need(block(0))
	Need(block(0))
	Prefetch(r.memory[60*blockBytes : 70*blockBytes])
	if got, want := q.since(r), "60+1"; got != want {
		t.Errorf("after one block was needed, prefetched %s, want %s", got, want)
	}
	q.fail = errors.New("no route")
	Need(block(60))
	Prefetch(block(80))
	q.since(r)
	q.fail = nil
	Prefetch(block(90))
	if got, want := q.since(r), "90+1"; got != want {
		t.Errorf("after a failure, prefetched %s, want %s", got, want)
	}
	r.close()
	if pages.early != 0 {
		t.Errorf("after closing, %d bytes count as prefetched", pages.early)
	}
}

// TestFailedRequests: a request that fails is the error of Guard, and is repeated by the next Need. Each of several files has its
// own error.
func TestFailedRequests(t *testing.T) {
	bad, good := &requests{unit: blockBytes, fail: errors.New("no route")}, &requests{unit: blockBytes}
	a, b := remoteOf(t, bad, 10*blockBytes), remoteOf(t, good, 3*blockBytes)
	if err := Guard("file", func() error { Need(b.memory[:1]); Need(b.memory[2*blockBytes:]); return nil }); err != nil || good.since(b) != "0+1 2+1" {
		t.Error(err)
	}
	for _, want := range []string{"0+2", "0+2"} {
		err := Guard("file", func() error { Need(a.memory[blockBytes-1 : blockBytes+1]); return nil })
		if !errors.Is(err, bad.fail) {
			t.Errorf("error %v", err)
		}
		if got := bad.since(a); got != want || len(a.blocks) != 0 || HeldBytes() != 2*blockBytes {
			t.Errorf("%s; %d blocks are kept, %d bytes held", got, len(a.blocks), HeldBytes())
		}
	}
	a.end() // the context has ended
	a.read = func(context.Context, []byte, int64) error { t.Error("asked for after the end"); return nil }
	for range mostRequests {
		pages.room <- struct{}{} // so that nothing else can be chosen
	}
	err := Guard("file", func() error { Need(a.memory[:1]); return nil })
	for range mostRequests {
		<-pages.room
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	if _, err := newRemote(t.Context(), math.MaxInt64, bad.read); err == nil || !strings.Contains(err.Error(), "larger than this system's address space") {
		t.Errorf("a file as large as all addresses: %v", err)
	}
}

// TestDropping: if more than spareBytes are in memory, blocks are dropped, the least recently needed first. Blocks that a
// Guard holds stay. A Guard with spans holds only the blocks of its spans.
func TestDropping(t *testing.T) {
	ahead, spare := aheadBytes, spareBytes
	aheadBytes, spareBytes = requestBytes, 4*blockBytes
	defer func() { aheadBytes, spareBytes = ahead, spare }()
	q := &requests{unit: blockBytes}
	r := remoteOf(t, q, 100*blockBytes)
	at := func(n int) []byte { return r.memory[n*blockBytes : (n+1)*blockBytes] }
	need := func(numbers ...int) {
		for _, n := range numbers {
			Need(at(n))
			r.busy.Wait()
		}
	}
	kept := func(want ...int) {
		t.Helper()
		var have []int
		for n := range r.blocks {
			have = append(have, n)
		}
		if slices.Sort(have); !slices.Equal(have, want) || HeldBytes() != int64(len(want))*blockBytes {
			t.Errorf("%v are kept in %d bytes, want %v", have, HeldBytes(), want)
		}
	}
	alone := func(numbers ...int) {
		for _, n := range numbers {
			if err := Guard("file", func() error { need(n); return nil }); err != nil {
				t.Error(err)
			}
		}
	}
	alone(90, 80, 70, 60)
	kept(60, 70, 80, 90)
	alone(50)
	kept(50, 60, 70, 80)
	alone(80, 40)
	kept(40, 50, 60, 80)
	if err := Guard("file", func() error { // keeps everything since
		need(30, 20, 10, 2, 4, 6)
		kept(2, 4, 6, 10, 20, 30)
		return GuardOf("file", [][]byte{nil, at(8)[10:20]}, func() error {
			need(8)
			return nil
		})
	}); err != nil {
		t.Error(err)
	}
	alone(12)
	kept(4, 6, 8, 12)
	if err := GuardOf("file", [][]byte{r.memory[14*blockBytes : 15*blockBytes+1]}, func() error {
		need(14)
		alone(16, 18, 22, 24)
		kept(14, 18, 22, 24)
		need(15, 13)
		alone(17, 19, 21, 23)
		kept(14, 15, 21, 23)
		return nil
	}); err != nil {
		t.Error(err)
	}
	alone(31, 33, 35)
	kept(23, 31, 33, 35)
	r.big = 2 * blockBytes // of the largest tensor
	alone(37, 39)
	kept(23, 31, 33, 35, 37, 39)
}
