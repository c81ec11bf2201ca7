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
)

// Collective is a kind of exchange between cards.
type Collective string

const (
	// AllReduce gives every card the sum of all cards' buffers.
	AllReduce Collective = "allreduce"
	// AllGather gives every card the buffers of all cards, one after the other.
	AllGather Collective = "allgather"
)

// Group is several cards of one host that exchange data through NCCL. Its methods are for one goroutine.
type Group struct {
	devices []*Device
	nccl    *nccl
	version int32
	members []*member
	op      Collective
	count   uint64 // number of BF16 values that a card sends
	run     *GroupRun
	closed  bool
}

// member is a card's part of a group.
type member struct {
	device   *Device
	comm     uintptr
	stream   uintptr // stream of collectives
	begin    uintptr // events of a run
	end      uintptr
	marks    [ahead]uintptr
	fork     uintptr // events that synchronise the two streams and record no time
	join     uintptr
	memory   *arena
	send     [sets]uint64
	received [sets]uint64
}

// sets is the number of sets of buffers, which have the same contents at different addresses.
const sets = 2

// NewGroup returns a group of cards that [OpenShared] has opened, with a communicator. Without NCCL the error is an [ErrNoNCCL].
func NewGroup(devices []*Device) (*Group, error) {
	if len(devices) < 2 {
		return nil, fmt.Errorf("a group of %d cards: give at least two", len(devices))
	}
	for _, d := range devices {
		if !d.shared {
			return nil, errors.New("a card of a group must be opened by OpenShared, because NCCL uses the primary context")
		}
	}
	n, err := devices[0].api.nccl()
	if err != nil {
		return nil, err
	}
	g := &Group{devices: devices, nccl: n}
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

// Prepare allocates buffers for a collective. size is in bytes: the size of a card's buffer for an all-reduce, and the size of
// the gathered data for an all-gather. Prepare checks the collective's results. Then it fills the cards' send buffers with data,
// repeated as needed.
func (g *Group) Prepare(ctx context.Context, op Collective, size int64, data []byte) error {
	each, all := int(size), int(size)
	if op == AllGather {
		each /= len(g.members)
	}
	if each < 2 || each%2 != 0 || len(data) == 0 || len(data)%2 != 0 {
		return fmt.Errorf("%s of %d bytes: give a size of whole BF16 values for every card", op, size)
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

// checkPeriod is the number of different values of smallIntegers.
const checkPeriod = 101

// smallIntegers returns BF16 values whose sums over a few cards are exact: integers up to 256 are exact in BF16.
func smallIntegers(rank int) []byte {
	b := make([]byte, 2*checkPeriod)
	for i := range checkPeriod {
		binary.LittleEndian.PutUint16(b[2*i:], bf16(float32((i+7*rank)%checkPeriod%25)))
	}
	return b
}

func bf16(v float32) uint16 { return uint16(math.Float32bits(v) >> 16) } // exact for small integers

// expected returns the beginning of the data that a card receives if all cards send smallIntegers; the received data repeat it.
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
					return fmt.Errorf("%s on card %d: value %d is wrong: the sum or copy of small integers is not exact", g.op, rank, (at+i)/2)
				}
			}
		}
	}
	return nil
}

// differs returns the first index at which data differs from repetitions of want, or a negative number. data begins at offset at
// of the repetitions.
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

// GroupRun is work that runs on all cards of a group at the same time.
type GroupRun struct {
	group   *Group
	runs    []*run
	batches []*Batch

	mu      sync.Mutex
	granted int // number of pieces that at least one card has queued
	stopped bool
}

// Start queues n executions on every card and returns at once. An execution is a replay of the card's batch, a collective in a
// set of buffers, or both at the same time; the next execution begins when both have ended. batches is nil for no batch, and set
// negative for no collective.
func (g *Group) Start(name string, batches []*Batch, set, n int) (*GroupRun, error) {
	if n < 1 || batches == nil && set < 0 || set >= sets {
		return nil, fmt.Errorf("%s: %d executions, buffers %d: there is nothing to run", name, n, set)
	}
	r := &GroupRun{group: g, batches: batches}
	g.run = r
	errs := make([]error, len(g.members))
	r.runs = make([]*run, len(g.members))
	var all sync.WaitGroup // a card's first collective may wait for the other cards
	for i, m := range g.members {
		p := &pieces{run: r, member: m, set: set, left: n}
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

// grant reports whether a card may queue its piece of a number. After a stop, a card may only queue pieces that another card has
// queued, because a collective ends only if all cards run it.
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

// Wait returns when all cards are done. If ctx ends first, Wait returns ctx's error, and the cards stop after the queued work.
func (r *GroupRun) Wait(ctx context.Context) error {
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

// Elapsed returns the longest of the cards' times of the run, by their clocks.
func (r *GroupRun) Elapsed() (longest time.Duration, err error) {
	for i, m := range r.group.members {
		if !r.runs[i].over() || r.runs[i].err != nil {
			return 0, errors.New("the group's run has failed or has not ended yet: wait for it, and check its error")
		}
		var took time.Duration
		if err := m.device.thread.do(func() (err error) { took, err = m.device.between(m.begin, m.end); return err }); err != nil {
			return 0, err
		}
		longest = max(longest, took)
	}
	return longest, nil
}

// groupChunk is the number of executions in a piece of a run.
const groupChunk = 8

// pieces is the remaining work of a card in a run.
type pieces struct {
	run    *GroupRun
	member *member
	batch  *Batch // nil: none
	set    int    // negative: no collective
	left   int
	queued int
}

func (p *pieces) next() (mark uintptr, err error) {
	now := min(groupChunk, p.left)
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
	mark = m.marks[p.queued%ahead]
	if p.left == now {
		mark = m.end
	}
	p.left, p.queued = p.left-now, p.queued+1
	return mark, record(mark)
}

// execution queues a replay, a collective, or both at the same time.
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

// besides queues a replay and a collective that run at the same time. Later work on the card's stream begins when both have ended.
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

// Close ends a run and frees communicators and buffers. The cards stay open. It is idempotent.
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
