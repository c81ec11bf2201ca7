package weights

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// A file in an object store has addresses for all its data, and memory only for the blocks in use. Need reads missing blocks.
// Mapped memory is only read within a Guard. So a block can be dropped when every Guard that began before the block's last
// Need has ended. Callers do not release blocks.

const (
	blockBytes   = 64 << 10             // size of a block: the unit of reading and dropping
	requestBytes = 4 << 20              // largest request
	mostRequests = 8                    // concurrent requests
	leastRun     = 1 << 20 / blockBytes // blocks read in order before reading ahead starts; samples at the end of a tensor and the start of the next are shorter
)

// Tests use smaller values.
var (
	aheadBytes = 24 << 20        // bytes that are read ahead of a sequential reader; at least requestBytes
	spareBytes = int64(40 << 20) // bytes that are kept in addition to the size of the largest tensor
	dropAtOnce = false           // for tests: drop every block that no guard holds, so that reading outside a guard is a fault
)

// remote is the memory of a file in a store.
type remote struct {
	ctx    context.Context
	end    context.CancelFunc
	memory []byte
	read   func(ctx context.Context, p []byte, at int64) error
	blocks map[int]*block // blocks that have memory or are being read
	big    int64          // bytes of the largest tensor
	little []span         // memory of which only samples are read; nothing is read ahead there
	next   int            // the block after the last one that was needed
	run    int            // blocks needed in order until next
	busy   sync.WaitGroup
}

// block is a piece of a file.
type block struct {
	of     *remote
	number int
	stamp  uint64        // the pager's clock at the last Need
	early  bool          // read in advance, and not needed yet
	ready  chan struct{} // closed once reading has succeeded or failed
	err    error
	place  *list.Element // place in the pager's list; nil until the block is read
}

// pager holds the blocks of all files.
type pager struct {
	mu     sync.Mutex
	files  []*remote // sorted by address
	clock  uint64    // counts calls of Need
	guards map[*guard]struct{}
	read   list.List     // blocks in memory; the most recently needed one is last
	held   int64         // bytes of all blocks
	early  int64         // bytes of the blocks that were read in advance and are not needed yet
	room   chan struct{} // limits concurrent requests
}

// guard is a running Guard.
type guard struct {
	began uint64
	spans []span // data needed since the guard's start that stay in memory; nil: all of them
}

// span is a range of addresses.
type span struct{ first, end uintptr }

// holds reports whether a guard keeps a block in memory.
func (g *guard) holds(b *block) bool {
	if b.stamp <= g.began {
		return false
	}
	if g.spans == nil {
		return true
	}
	from := b.of.from() + uintptr(b.number)*blockBytes
	return slices.ContainsFunc(g.spans, func(s span) bool { return s.first < from+blockBytes && from < s.end })
}

var pages = pager{guards: map[*guard]struct{}{}, room: make(chan struct{}, mostRequests)}

// remotes is the number of open files in stores. While it is 0, Need returns at once, and Guard keeps no blocks.
var remotes atomic.Int64

// newRemote reserves addresses for a file.
func newRemote(ctx context.Context, size int64, read func(ctx context.Context, p []byte, at int64) error) (*remote, error) {
	if size > math.MaxInt-blockBytes {
		return nil, errors.New("is larger than this system's address space")
	}
	memory, err := reserveAddresses(int(size))
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(ctx)
	r := &remote{ctx: ctx, end: end, memory: memory, read: read, blocks: map[int]*block{}, next: -1}
	pages.mu.Lock()
	defer pages.mu.Unlock()
	at, _ := pages.find(r.from())
	pages.files = slices.Insert(pages.files, at, r)
	remotes.Add(1)
	return r, nil
}

// find returns the place in files of the file whose memory begins at an address.
func (p *pager) find(address uintptr) (int, bool) {
	return slices.BinarySearchFunc(p.files, address, func(r *remote, address uintptr) int { return cmp.Compare(r.from(), address) })
}

func (r *remote) from() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(r.memory))) }

// close ends all reading and releases the addresses.
func (r *remote) close() error {
	r.end()
	r.busy.Wait()
	pages.mu.Lock()
	defer pages.mu.Unlock()
	for _, b := range r.blocks {
		pages.held -= int64(len(b.memory()))
		pages.due(b)
		pages.read.Remove(b.place)
	}
	r.blocks = nil
	pages.files = slices.DeleteFunc(pages.files, func(f *remote) bool { return f == r })
	remotes.Add(-1)
	return unmap(r.memory)
}

// span returns the memory of the blocks [first, end).
func (r *remote) span(first, end int) []byte {
	return r.memory[first*blockBytes : min(end*blockBytes, len(r.memory))]
}

func (b *block) memory() []byte { return b.of.span(b.number, b.number+1) }

// Need returns b once its bytes are in memory. b is a part of a tensor's Data. For files on a disk Need does nothing. Data of
// a model in an object store may only be read after Need, within the same [Guard]. The Guard returns errors of reading.
func Need(b []byte) []byte {
	if remotes.Load() == 0 || len(b) == 0 {
		return b
	}
	for _, part := range pages.request(uintptr(unsafe.Pointer(unsafe.SliceData(b))), len(b)) {
		<-part.ready
		if part.err != nil {
			panic(needFailed{part.err})
		}
	}
	return b
}

// needFailed is the panic of Need that Guard converts to an error.
type needFailed struct{ err error }

// request starts reading the blocks of n bytes that are missing, and some that follow if the caller reads in order. It returns
// the blocks to wait for.
func (p *pager) request(address uintptr, n int) (wait []*block) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, first, last := p.blocksOf(address, n)
	if r == nil {
		return nil
	}
	p.clock++
	end := last
	switch inOrder := first <= r.next && r.next <= last+1; {
	case !inOrder:
		r.run = last + 1 - first
	default:
		if r.run += last + 1 - r.next; r.run >= leastRun && !slices.ContainsFunc(r.little, func(s span) bool { return s.first <= address && address < s.end }) {
			end = r.ahead(last)
		}
	}
	r.next = last + 1
	var missing []*block
	for n := first; n <= end; n++ {
		b := r.blocks[n]
		if b == nil {
			b = r.add(n)
			missing = append(missing, b)
		}
		b.stamp = p.clock
		if n <= last {
			p.due(b)
		}
		if b.place != nil {
			p.read.MoveToBack(b.place)
		} else if n <= last {
			wait = append(wait, b)
		}
		if len(missing) > 0 && (n == end || len(missing) == requestBytes/blockBytes || r.blocks[n+1] != nil) {
			p.start(r, missing)
			missing = nil
		}
	}
	return wait
}

// blocksOf returns the file that has n bytes of memory at an address, and the first and last block of this memory. r is nil
// if the memory belongs to no file in a store.
func (p *pager) blocksOf(address uintptr, n int) (r *remote, first, last int) {
	at, exact := p.find(address)
	if !exact {
		at--
	}
	if at < 0 || address-p.files[at].from() >= uintptr(len(p.files[at].memory)) {
		return nil, 0, 0
	}
	r = p.files[at]
	start := int(address - r.from())
	return r, start / blockBytes, (start + n - 1) / blockBytes
}

// add adds a block that is going to be read.
func (r *remote) add(number int) *block {
	b := &block{of: r, number: number, ready: make(chan struct{})}
	r.blocks[number] = b
	return b
}

// due stops counting a block as read in advance, because it is needed now or dropped.
func (p *pager) due(b *block) {
	if b.early {
		b.early = false
		p.early -= int64(len(b.memory()))
	}
}

// sampled is [Sampled] for files in stores. ok is false for other memory.
func (p *pager) sampled(data []byte) (end func(), ok bool) {
	if remotes.Load() == 0 || len(data) == 0 {
		return nil, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	address := addressOf(data)
	r, _, _ := p.blocksOf(address, len(data))
	if r == nil {
		return nil, false
	}
	s := span{address, address + uintptr(len(data))}
	r.little = append(r.little, s)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if i := slices.Index(r.little, s); i >= 0 {
			r.little = slices.Delete(r.little, i, i+1)
		}
	}, true
}

// prefetch begins to read data that will be needed soon. It uses at most half of spareBytes.
func (p *pager) prefetch(data []byte) {
	if remotes.Load() == 0 || len(data) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r, first, last := p.blocksOf(addressOf(data), len(data))
	if r == nil {
		return
	}
	p.clock++
	var missing []*block
	for n := first; n <= last; n++ {
		size := int64(len(r.span(n, n+1)))
		if r.blocks[n] == nil && p.early+size <= spareBytes/2 {
			b := r.add(n)
			b.stamp, b.early = p.clock, true
			p.early += size
			missing = append(missing, b)
		}
		if len(missing) > 0 && (n == last || len(missing) == requestBytes/blockBytes || r.blocks[n+1] != nil || missing[len(missing)-1].number < n) {
			p.start(r, missing)
			missing = nil
		}
	}
}

// ahead returns the last block to read for a caller that needs block last. It returns last itself while enough of the
// following blocks are in memory, so that each request for more is large.
func (r *remote) ahead(last int) int {
	end := min(last+aheadBytes/blockBytes, (len(r.memory)-1)/blockBytes)
	if near := min(last+(aheadBytes-requestBytes)/blockBytes, end); r.blocks[near] != nil {
		return last
	}
	return end
}

// start begins to read consecutive blocks.
func (p *pager) start(r *remote, blocks []*block) {
	first := blocks[0].number
	span := r.span(first, first+len(blocks))
	p.held += int64(len(span))
	p.shrink()
	r.busy.Go(func() {
		err := p.fill(r, span, int64(first)*blockBytes)
		p.mu.Lock()
		defer p.mu.Unlock()
		if err != nil {
			p.held -= int64(len(span))
		}
		for _, b := range blocks {
			if b.err = err; err != nil {
				delete(r.blocks, b.number)
				p.due(b)
			} else {
				b.place = p.read.PushBack(b)
			}
			close(b.ready)
		}
	})
}

// fill reads bytes of a file into their memory.
func (p *pager) fill(r *remote, span []byte, at int64) error {
	select {
	case p.room <- struct{}{}:
		defer func() { <-p.room }()
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
	if err := commit(span); err != nil {
		return err
	}
	if err := r.read(r.ctx, span, at); err != nil {
		return errors.Join(err, decommit(span))
	}
	return readOnly(span)
}

// shrink drops blocks that no guard holds, until the other blocks fit into memory.
func (p *pager) shrink() {
	most := spareBytes
	for _, r := range p.files {
		most = max(most, spareBytes+r.big)
	}
	if dropAtOnce {
		most = 0
	}
	var run []*block // blocks to drop, each after the one before
	for e := p.read.Front(); e != nil && p.held > most; {
		b := e.Value.(*block)
		e = e.Next()
		if p.guarded(b) {
			continue
		}
		if n := len(run); n > 0 && (run[n-1].of != b.of || run[n-1].number+1 != b.number) {
			p.drop(run)
			run = run[:0]
		}
		run = append(run, b)
		p.held -= int64(len(b.memory()))
	}
	p.drop(run)
}

// drop frees the memory of consecutive blocks, which are no longer counted in held. If the system refuses, the blocks stay.
func (p *pager) drop(run []*block) {
	if len(run) == 0 {
		return
	}
	first := run[0]
	span := first.of.span(first.number, first.number+len(run))
	if decommit(span) != nil {
		p.held += int64(len(span))
		return
	}
	for _, b := range run {
		p.read.Remove(b.place)
		p.due(b)
		delete(b.of.blocks, b.number)
	}
}

// guarded reports whether a guard keeps a block in memory.
func (p *pager) guarded(b *block) bool {
	for g := range p.guards {
		if g.holds(b) {
			return true
		}
	}
	return false
}

// enter registers a guard that keeps spans in memory; nil: everything. leave ends the guard.
func (p *pager) enter(spans []span) (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := &guard{p.clock, spans}
	p.guards[g] = struct{}{}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.guards, g)
		if dropAtOnce {
			p.shrink()
		}
	}
}
