package cuda

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// Collective is a kind of data exchange between cards.
type Collective string

const (
	// AllReduce gives every card the sum of the buffers of all cards.
	AllReduce Collective = "allreduce"
	// AllGather gives every card the concatenated buffers of all cards.
	AllGather Collective = "allgather"
)

// Group is several cards of one host that exchange data through NCCL. Its methods must be called from one goroutine.
type Group struct {
	devices []*Device
	nccl    *nccl
	version int32
	members []*member
	op      Collective
	count   uint64 // number of BF16 values that a card sends
	run     *GroupRun
	each    map[work]time.Duration // duration of an execution, from the last run of the same work
	closed  bool
}

// work is the work of a run on the first card. batch may be nil; set is a set of buffers, or negative for none.
type work struct {
	batch *Batch
	set   int
}

// member is a card of a group with its buffers and streams.
type member struct {
	device   *Device
	comm     uintptr
	stream   uintptr // stream of collectives
	begin    uintptr // events at the start and end of a run
	end      uintptr
	marks    [ahead]uintptr
	fork     uintptr // events that synchronise the two streams; they record no time
	join     uintptr
	memory   *arena
	send     [sets]uint64
	received [sets]uint64
}

// sets is the number of sets of buffers. The sets have equal contents at different addresses.
const sets = 2

// NewGroup returns a group of cards opened with [OpenShared], with a communicator. Without NCCL the error is an
// [ErrNoNCCL].
func NewGroup(devices []*Device) (*Group, error) {
	if len(devices) < 2 {
		return nil, fmt.Errorf("a group of %d cards: give at least two cards", len(devices))
	}
	for _, d := range devices {
		if !d.shared {
			return nil, errors.New("the cards of a group must be opened with OpenShared, because NCCL uses the primary context")
		}
	}
	n, err := devices[0].api.nccl()
	if err != nil {
		return nil, err
	}
	g := &Group{devices: devices, nccl: n, each: map[work]time.Duration{}}
	if err := n.check("ncclGetVersion", n.ncclGetVersion(&g.version)); err != nil {
		return nil, err
	}
	var ordinals []int32
	for _, d := range devices {
		ordinals = append(ordinals, int32(d.index))
	}
	t := startThread() // NCCL changes its context
	var comms []uintptr
	if err := t.end(func() (err error) { comms, err = n.initAll(ordinals); return err }); err != nil {
		return nil, err
	}
	for i, d := range devices {
		m := &member{device: d, comm: comms[i], memory: &arena{device: d}}
		g.members = append(g.members, m)
		if err := d.thread.do(m.setUp); err != nil {
			return nil, errors.Join(err, g.Close())
		}
	}
	return g, nil
}

// Version returns NCCL's version.
func (g *Group) Version() string { return ncclVersion(g.version) }

func (m *member) events() []*uintptr {
	return []*uintptr{&m.begin, &m.end, &m.fork, &m.join, &m.marks[0], &m.marks[1], &m.marks[2]}
}

func (m *member) setUp() (err error) {
	a := m.device.api
	if err := a.check("cuStreamCreate", a.cuStreamCreate(&m.stream, streamNonBlocking)); err != nil {
		return err
	}
	for _, e := range m.events() {
		if *e, err = m.device.event(); err != nil {
			return err
		}
	}
	return nil
}

// Prepare allocates buffers for a collective and checks the collective's results. It then fills the cards' send buffers
// with data, repeated as needed. For an all-reduce, size is the size of a card's buffer in bytes. For an all-gather, it
// is the size of the gathered data.
func (g *Group) Prepare(ctx context.Context, op Collective, size int64, data []byte) error {
	each, all := int(size), int(size)
	if op == AllGather {
		each /= len(g.members)
	}
	if each < 2 || each%2 != 0 || len(data) == 0 || len(data)%2 != 0 {
		return fmt.Errorf("%s of %d bytes: give a size that is a whole number of BF16 values for every card", op, size)
	}
	g.op, g.count = op, uint64(each/2)
	for rank, m := range g.members {
		err := m.device.thread.do(func() error {
			for i := range sets {
				var err error
				if m.send[i], err = m.memory.alloc(each); err != nil {
					return err
				}
				if m.received[i], err = m.memory.alloc(all); err != nil {
					return err
				}
				if err := m.fill(i, each, smallIntegers(rank)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := g.check(ctx); err != nil {
		return err
	}
	for _, m := range g.members {
		for i := range sets {
			if err := m.device.thread.do(func() error { return m.fill(i, each, data) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill fills a card's send buffer with data, repeated as needed.
func (m *member) fill(set, size int, data []byte) error {
	block := data[:min(len(data), size)]
	if err := m.device.upload(m.send[set], block); err != nil {
		return err
	}
	return m.device.spread(m.send[set], len(block), size)
}

// checkPeriod is the number of values after which smallIntegers repeats.
const checkPeriod = 101

// smallIntegers returns BF16 values whose sums over a few cards are exact. Integers up to 256 are exact in BF16.
func smallIntegers(rank int) []byte {
	b := make([]byte, 2*checkPeriod)
	for i := range checkPeriod {
		binary.LittleEndian.PutUint16(b[2*i:], bf16(float32((i+7*rank)%checkPeriod%25)))
	}
	return b
}

func bf16(v float32) uint16 { return uint16(math.Float32bits(v) >> 16) } // exact for small integers

// expected returns the start of the data that a card receives if all cards send smallIntegers. The received data
// repeats it.
func (g *Group) expected() (data []byte) {
	switch g.op {
	case AllGather:
		each := int(2 * g.count)
		for rank := range g.members {
			one := smallIntegers(rank)
			for n := 0; n < each; n += len(one) {
				data = append(data, one[:min(len(one), each-n)]...)
			}
		}
		return data
	default:
		for i := range checkPeriod {
			sum := float32(0)
			for rank := range g.members {
				sum += math.Float32frombits(uint32(binary.LittleEndian.Uint16(smallIntegers(rank)[2*i:])) << 16)
			}
			data = binary.LittleEndian.AppendUint16(data, bf16(sum))
		}
		return data
	}
}

// check runs the collective once in each set of buffers and checks every received value.
func (g *Group) check(ctx context.Context) error {
	want := g.expected()
	for set := range sets {
		r, err := g.Start("check", nil, set, 1)
		if err == nil {
			err = r.Wait(ctx)
		}
		if err != nil {
			return err
		}
		for rank, m := range g.members {
			all := int(2 * g.count)
			if g.op == AllGather {
				all *= len(g.members)
			}
			got := make([]byte, min(all, stagingBytes))
			for at := 0; at < all; at += len(got) {
				part := got[:min(len(got), all-at)]
				if err := m.device.thread.do(func() error { return m.device.download(part, m.received[set]+uint64(at)) }); err != nil {
					return err
				}
				if i := differs(part, want, at); i >= 0 {
					return fmt.Errorf("%s on card %d: the collective returned a wrong value at index %d, although sums and copies of small integers are exact: check the NCCL installation", g.op, rank, (at+i)/2)
				}
			}
		}
	}
	return nil
}

// differs returns the first index at which data differs from repetitions of want, or a negative number. data starts at
// the offset at within the repetitions.
func differs(data, want []byte, at int) int {
	for i := 0; i < len(data); {
		from := (at + i) % len(want)
		n := min(len(data)-i, len(want)-from)
		if !bytes.Equal(data[i:i+n], want[from:from+n]) {
			return i
		}
		i += n
	}
	return -1
}

// launch queues one card's part of a collective. Every card must queue the same collectives in the same order.
func (g *Group) launch(m *member, stream uintptr, set int) error {
	if g.op == AllGather {
		return g.nccl.check("ncclAllGather", g.nccl.ncclAllGather(m.send[set], m.received[set], g.count, ncclBF16, m.comm, stream))
	}
	return g.nccl.check("ncclAllReduce", g.nccl.ncclAllReduce(m.send[set], m.received[set], g.count, ncclBF16, ncclSum, m.comm, stream))
}

// meet queues a card's part of an all-reduce of one value, at which the cards wait for each other.
func (g *Group) meet(m *member) error {
	return g.nccl.check("ncclAllReduce", g.nccl.ncclAllReduce(m.send[0], m.received[0], 1, ncclBF16, ncclSum, m.comm, m.device.stream))
}

// GroupRun is work that runs on all cards of a group at the same time.
type GroupRun struct {
	group   *Group
	runs    []*run
	batches []*Batch
	work    work
	n       int // executions

	mu      sync.Mutex
	granted int // number of pieces that at least one card has queued
	stopped bool
}

// Start queues n executions on every card and returns at once. An execution is a replay of the card's batch, a
// collective in a set of buffers, or both at the same time. The next execution starts when both have ended. batches is
// nil for no batch, and set is negative for no collective. Without a collective, the cards wait for each other after about 25 ms
// or 256 executions, so that none of them idles long before the others have ended. Call [Group.Prepare] first.
func (g *Group) Start(name string, batches []*Batch, set, n int) (*GroupRun, error) {
	if n < 1 || batches == nil && set < 0 || set >= sets {
		return nil, fmt.Errorf("%s: %d executions with set of buffers %d: give at least one execution, and batches or a set of buffers", name, n, set)
	}
	if g.count == 0 {
		return nil, fmt.Errorf("%s: the group has no buffers: call Prepare first", name)
	}
	r := &GroupRun{group: g, batches: batches, work: work{set: set}, n: n}
	if batches != nil {
		r.work.batch = batches[0]
	}
	chunk := firstChunk
	if each := g.each[r.work]; each > 0 {
		chunk = max(1, min(mostQueued, int(pieceTime/each)))
	}
	g.run = r
	errs := make([]error, len(g.members))
	r.runs = make([]*run, len(g.members))
	var all sync.WaitGroup // a card's first collective may wait for the other cards
	for i, m := range g.members {
		p := &pieces{run: r, member: m, set: set, left: n, chunk: chunk}
		if batches != nil {
			p.batch = batches[i]
		}
		all.Go(func() { r.runs[i], errs[i] = m.device.start(name, p) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		r.stop()
		return nil, err
	}
	return r, nil
}

// grant reports whether a card may queue the piece with a given number. After a stop, a card may only queue pieces that
// another card has already queued, because a collective ends only if all cards run it.
func (r *GroupRun) grant(piece int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped && piece >= r.granted {
		return false
	}
	r.granted = max(r.granted, piece+1)
	return true
}

func (r *GroupRun) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
}

// Wait waits until all cards are done. If ctx ends first, Wait returns ctx's error, and the cards stop after the queued
// work.
func (r *GroupRun) Wait(ctx context.Context) error {
	if ctx == nil {
		return parallel.ErrNoContext
	}
	var errs []error
	for _, one := range r.runs {
		select {
		case <-one.done:
			errs = append(errs, one.err)
		case <-ctx.Done():
			r.stop()
			return ctx.Err()
		}
	}
	return errors.Join(errs...)
}

// Elapsed returns the duration of the run on the slowest card, by that card's clock.
func (r *GroupRun) Elapsed() (longest time.Duration, err error) {
	for i, m := range r.group.members {
		if !r.runs[i].over() || r.runs[i].err != nil {
			return 0, errors.New("the group's run has failed or has not ended: call Wait and check its error")
		}
		var took time.Duration
		if err := m.device.thread.do(func() (err error) { took, err = m.device.between(m.begin, m.end); return err }); err != nil {
			return 0, err
		}
		longest = max(longest, took)
	}
	r.group.each[r.work] = longest / time.Duration(r.n)
	return longest, nil
}

// firstChunk is the number of executions in a piece while the duration of an execution is unknown.
const firstChunk = 8

// pieces is a card's remaining work in a run.
type pieces struct {
	run    *GroupRun
	member *member
	batch  *Batch // nil: no batch
	set    int    // negative: no collective
	left   int
	queued int // pieces
	chunk  int // executions in a piece; the same on all cards
}

func (p *pieces) next() (mark uintptr, err error) {
	now := min(p.chunk, p.left)
	if now == 0 || !p.run.grant(p.queued) {
		return 0, nil
	}
	m := p.member
	stream := m.device.stream
	if p.batch == nil {
		stream = m.stream
	}
	record := func(event uintptr) error {
		return m.device.api.check("cuEventRecord", m.device.api.cuEventRecord(event, stream))
	}
	if p.queued == 0 {
		if err := record(m.begin); err != nil {
			return 0, err
		}
	}
	for range now {
		if err := p.execution(); err != nil {
			return 0, err
		}
	}
	if p.set < 0 {
		if err := p.run.group.meet(m); err != nil {
			return 0, err
		}
	}
	mark = m.marks[p.queued%ahead]
	if p.left == now {
		mark = m.end
	}
	p.left, p.queued = p.left-now, p.queued+1
	return mark, record(mark)
}

// execution queues a replay, a collective, or both to run at the same time.
func (p *pieces) execution() error {
	m := p.member
	if p.batch == nil {
		return p.run.group.launch(m, m.stream, p.set)
	}
	if p.set < 0 {
		return m.device.replay(p.batch.exec, 1)
	}
	return p.run.group.besides(m, p.batch, p.set)
}

// besides queues a replay and a collective to run at the same time. Later work on the card's stream starts when both
// have ended.
func (g *Group) besides(m *member, b *Batch, set int) error {
	a := m.device.api
	return first(
		func() error { return a.check("cuEventRecord", a.cuEventRecord(m.fork, m.device.stream)) },
		func() error { return a.check("cuStreamWaitEvent", a.cuStreamWaitEvent(m.stream, m.fork, 0)) },
		func() error { return g.launch(m, m.stream, set) },
		func() error { return m.device.replay(b.exec, 1) },
		func() error { return a.check("cuEventRecord", a.cuEventRecord(m.join, m.stream)) },
		func() error { return a.check("cuStreamWaitEvent", a.cuStreamWaitEvent(m.device.stream, m.join, 0)) },
	)
}

func (p *pieces) ended() error { return nil }

// Close ends a run and frees communicators and buffers. The cards stay open. Close is idempotent.
func (g *Group) Close() error {
	if g.closed {
		return nil
	}
	g.closed = true
	if r := g.run; r != nil {
		r.stop()
		for _, one := range r.runs {
			if one != nil {
				<-one.done
			}
		}
	}
	var errs []error
	for _, m := range g.members {
		errs = append(errs, m.device.release(func() error { return m.tearDown(g.nccl) }))
	}
	return errors.Join(errs...)
}

func (m *member) tearDown(n *nccl) error {
	a := m.device.api
	errs := []error{m.device.sync(), n.check("ncclCommDestroy", n.ncclCommDestroy(m.comm)), m.memory.free()}
	for _, e := range m.events() {
		if *e != 0 {
			errs = append(errs, a.check("cuEventDestroy", a.cuEventDestroy(*e)))
			*e = 0
		}
	}
	if m.stream != 0 {
		errs = append(errs, a.check("cuStreamDestroy", a.cuStreamDestroy(m.stream)))
		m.stream = 0
	}
	return errors.Join(errs...)
}
