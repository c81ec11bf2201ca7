package cuda

import (
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"testing"
	"unsafe"
)

// shares sets the functions that cards of a group use in addition.
func (c *card) shares(a *api) {
	a.cuDevicePrimaryCtxRetain = func(h *uintptr, _ int32) result {
		return pick[result](c.create("cuDevicePrimaryCtxRetain", h, "primary context"), 46)
	}
	a.cuDevicePrimaryCtxRelease = func(int32) result {
		for h, kind := range c.alive {
			if kind == "primary context" {
				return c.destroy(h, kind)
			}
		}
		return 201
	}
	a.cuCtxSetCurrent = func(h uintptr) result { return pick[result](c.alive[h] == "primary context", 201) }
	a.cuStreamWaitEvent = func(stream, event uintptr, _ uint32) result {
		return pick[result](c.ok("cuStreamWaitEvent") && c.alive[stream] == "stream" && c.alive[event] == "event", 400)
	}
	a.nccl = func() (*nccl, error) { return nil, errors.New("this card is in no host") }
}

// fakeNCCL is a pretended NCCL between pretended cards. A collective runs when the last card queues it.
type fakeNCCL struct {
	t     *testing.T
	cards []*card
	wrong bool // the sums are off by one

	mu     sync.Mutex
	queued []int // collectives of each card
	sent   map[int]map[int]fakeSend
	alive  int // communicators
}

type fakeSend struct{ send, receive, count uint64 }

// newFakeHost opens cards with a pretended NCCL.
func newFakeHost(t *testing.T, cards int) (*fakeNCCL, []*Device) {
	t.Helper()
	f := &fakeNCCL{t: t, sent: map[int]map[int]fakeSend{}}
	var devices []*Device
	for i := range cards {
		c := newCard(t)
		f.cards, f.queued = append(f.cards, c), append(f.queued, 0)
		a := c.api()
		a.nccl = func() (*nccl, error) { return f.functions(), nil }
		a.cuDeviceGetCount = func(n *int32) result { *n = int32(cards); return 0 }
		d, err := open(a, i, true)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			if left := c.kinds(); left["stream"]+left["primary context"] != 0 || f.alive != 0 {
				t.Errorf("alive: %v and %d communicators", left, f.alive)
			}
		})
		devices = append(devices, d)
	}
	return f, devices
}

func (f *fakeNCCL) functions() *nccl {
	return &nccl{
		ncclGetVersion:     func(v *int32) int32 { *v = 22703; return 0 },
		ncclGetErrorString: func(int32) string { return "PLANTED" },
		ncclCommInitAll: func(comms *uintptr, n int32, _ *int32) int32 {
			all := unsafe.Slice(comms, n)
			for i := range all {
				all[i] = uintptr(i + 1)
			}
			f.alive = int(n)
			return 0
		},
		ncclCommDestroy: func(uintptr) int32 { f.mu.Lock(); defer f.mu.Unlock(); f.alive--; return 0 },
		ncclAllReduce: func(send, receive, count uint64, element, op int32, comm, _ uintptr) int32 {
			if element != ncclBF16 || op != ncclSum {
				return 4
			}
			return f.queue(int(comm)-1, fakeSend{send, receive, count}, f.sum)
		},
		ncclAllGather: func(send, receive, count uint64, element int32, comm, _ uintptr) int32 {
			return f.queue(int(comm)-1, fakeSend{send, receive, count}, f.gather)
		},
	}
}

// queue runs the collective once every card has it.
func (f *fakeNCCL) queue(rank int, s fakeSend, run func(map[int]fakeSend)) int32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.queued[rank]
	f.queued[rank]++
	if f.sent[n] == nil {
		f.sent[n] = map[int]fakeSend{}
	}
	f.sent[n][rank] = s
	if len(f.sent[n]) == len(f.cards) {
		run(f.sent[n])
		delete(f.sent, n)
	}
	return 0
}

func (f *fakeNCCL) sum(all map[int]fakeSend) {
	for i := range all[0].count {
		sum := float32(0)
		for rank, s := range all {
			sum += math.Float32frombits(uint32(binary.LittleEndian.Uint16(f.cards[rank].region(s.send+2*i, 2))) << 16)
		}
		if f.wrong {
			sum++
		}
		for rank, s := range all {
			binary.LittleEndian.PutUint16(f.cards[rank].region(s.receive+2*i, 2), bf16(sum))
		}
	}
}

func (f *fakeNCCL) gather(all map[int]fakeSend) {
	for rank, to := range all {
		for from, s := range all {
			copy(f.cards[rank].region(to.receive+uint64(from)*2*s.count, 2*s.count), f.cards[from].region(s.send, 2*s.count))
		}
	}
}
