package cuda

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

//go:embed kernels/traffic.cu
var trafficSource string

// Traffic is work without arithmetic on operands. It moves bytes within the card or keeps parts of the card active.
type Traffic struct {
	Name string
	Kind TrafficKind
	// Bytes is the size of the memory that Copy reads and writes, Fill writes, or Read reads.
	Bytes int64
	// Blocks is the number of thread blocks of Read and Spin, each on its own multiprocessor. Default: one per multiprocessor.
	Blocks int
	// Rounds is the number of passes of Read through the memory, or the number of operations of each thread of Spin in
	// thousands. Default: 1.
	Rounds int
	// Zeros fills the memory of Copy and Read with zeros. Default: random bits.
	Zeros bool
	// Time is the duration of Rest.
	Time time.Duration
}

// TrafficKind is a kind of memory traffic.
type TrafficKind uint8

const (
	// Copy reads Bytes and writes them to other addresses, in memory or, if source and destination fit, within the L2
	// cache. The bits are random, the same in every batch, and repeat after 16 MiB.
	Copy TrafficKind = iota
	// Fill writes the same 32-bit word to all of Bytes.
	Fill
	// Launch writes 4 bytes. The card runs at full clock and does almost no work.
	Launch
	// Read reads memory with a kernel of this module. It reads from the L2 cache if Bytes fits there and Rounds is
	// above 1.
	Read
	// Spin counts in registers and uses no memory.
	Spin
	// Rest waits in one thread. The card stays at full clock, and its multiprocessors have no work.
	Rest
)

// kernel returns the name of the kind's kernel in kernels/traffic.cu, and its number of threads per block. The name is
// empty for calls of the driver.
func (k TrafficKind) kernel() (name string, threads int) {
	switch k {
	case Read:
		return "read_memory", 1024
	case Spin:
		return "spin", 128
	case Rest:
		return "rest", 1
	default:
		return "", 0
	}
}

// fillWord has equally many ones and zeros.
const fillWord = 0x3C5AA5C3

// Validate returns an error for an unknown kind, for a size that is not a positive multiple of 4 bytes (16 for Read),
// for invalid Blocks or Rounds, and for a Rest that is not between a microsecond and a second.
func (t Traffic) Validate() error {
	unit := int64(4)
	if t.Kind == Read {
		unit = 16
	}
	sized := t.Kind == Copy || t.Kind == Fill || t.Kind == Read
	switch {
	case t.Kind > Rest:
		return fmt.Errorf("unknown kind of traffic %d: use Copy, Fill, Launch, Read, Spin or Rest", t.Kind)
	case sized && (t.Bytes <= 0 || t.Bytes%unit != 0):
		return fmt.Errorf("traffic of %d bytes: give a positive multiple of %d", t.Bytes, unit)
	case t.Kind == Read && t.Bytes/unit > math.MaxInt32/2:
		return fmt.Errorf("traffic of %d bytes is too large for Read: give less than 16 GiB", t.Bytes)
	case t.Blocks < 0 || t.Rounds < 0 || t.Rounds > 1e6:
		return fmt.Errorf("traffic of %d blocks and %d rounds: give 0 or more blocks, and 0 to 1000000 rounds", t.Blocks, t.Rounds)
	case t.Kind == Rest && (t.Time < time.Microsecond || t.Time > time.Second):
		return fmt.Errorf("rest of %v: give 1 µs to 1 s", t.Time)
	}
	return nil
}

// transfer is traffic on the card.
type transfer struct {
	Traffic
	device   *Device
	function *Function // nil for calls of the driver
	from, to uint64    // distinct memory; only Copy and Read use from
}

func (d *Device) newTransfers(ctx context.Context, traffic []Traffic) ([]*transfer, error) {
	var transfers []*transfer
	for _, t := range traffic {
		if err := t.Validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		t.Rounds = max(1, t.Rounds)
		if t.Blocks == 0 {
			t.Blocks = d.info.SMs
		}
		if t.Kind == Rest {
			t.Blocks = 1
		}
		one := &transfer{Traffic: t, device: d}
		if name, _ := t.Kind.kernel(); name != "" {
			module, err := d.traffic.compile(ctx, d, "traffic.cu", trafficSource)
			if err == nil {
				one.function, err = module.Function(name, 0)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.Name, err)
			}
		}
		transfers = append(transfers, one)
	}
	return transfers, nil
}

// transfers allocates memory for each transfer. When ctx ends, it stops before the next transfer.
func (a *arena) transfers(ctx context.Context, transfers []*transfer) error {
	for _, t := range transfers {
		steps := []error{ctx.Err()}
		for _, place := range []struct {
			at    *uint64
			bytes int64
		}{{&t.from, t.read()}, {&t.to, t.written()}} {
			if place.bytes > 0 && errors.Join(steps...) == nil {
				var err error
				*place.at, err = a.alloc(int(place.bytes))
				steps = append(steps, err)
			}
		}
		if t.from != 0 && errors.Join(steps...) == nil {
			fill := a.device.randomise
			if t.Zeros {
				fill = func(address uint64, bytes int) error { return a.device.Clear(Address(address), bytes) }
			}
			steps = append(steps, fill(t.from, int(t.Bytes)))
		}
		if err := errors.Join(steps...); err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	return nil
}

// read returns the size of the memory that the traffic reads, in bytes.
func (t *transfer) read() int64 {
	if t.Kind == Copy || t.Kind == Read {
		return t.Bytes
	}
	return 0
}

// written returns the size of the memory that the traffic may write, in bytes.
func (t *transfer) written() int64 {
	switch t.Kind {
	case Copy, Fill:
		return t.Bytes
	case Rest:
		return 0
	default:
		return 4
	}
}

// randomise fills memory with random bits. New memory may contain zeros, which take the least energy to move.
func (d *Device) randomise(address uint64, bytes int) error {
	block := make([]byte, min(bytes, stagingBytes))
	_, _ = rand.NewChaCha8([32]byte{}).Read(block) // Read never returns an error
	if err := d.upload(address, block); err != nil {
		return err
	}
	return d.spread(address, len(block), bytes)
}

// launch queues the traffic once.
func (t *transfer) launch(int) (err error) {
	a, stream := t.device.api, t.device.stream
	_, threads := t.Kind.kernel()
	blocks, size := Grid{X: t.Blocks}, Grid{X: threads}
	switch t.Kind {
	case Copy:
		err = a.check("cuMemcpyDtoDAsync", a.cuMemcpyDtoDAsync(t.to, t.from, uint64(t.Bytes), stream))
	case Read:
		err = t.function.Launch(blocks, size, Address(t.from), Address(t.to), int(t.Bytes/16), t.Rounds)
	case Spin:
		err = t.function.Launch(blocks, size, Address(t.to), t.Rounds)
	case Rest:
		err = t.function.Launch(blocks, size, int(t.Time))
	default:
		err = t.device.fill(t.to, t.written())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	return nil
}

// fill queues a fill of the given number of bytes, a multiple of 4.
func (d *Device) fill(address uint64, bytes int64) error {
	return d.api.check("cuMemsetD32Async", d.api.cuMemsetD32Async(address, fillWord, uint64(bytes/4), d.stream))
}
