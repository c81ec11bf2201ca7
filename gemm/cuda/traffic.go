package cuda

import (
	"context"
	"fmt"
	"math/rand/v2"
)

// Traffic is work without arithmetic: it moves bytes within the card.
type Traffic struct {
	Name  string
	Kind  TrafficKind
	Bytes int64 // of one execution: read and written for Copy, written for Fill; ignored for Launch
}

// TrafficKind is a kind of memory traffic.
type TrafficKind uint8

const (
	// Copy reads Bytes and writes them elsewhere: in memory, or within the L2 cache if source and destination
	// fit there. The bits are random, the same in every batch, and repeat after 16 MiB.
	Copy TrafficKind = iota
	// Fill writes Bytes: one 32-bit word again and again.
	Fill
	// Launch writes 4 bytes: the card runs at full clock and does almost nothing.
	Launch
)

// fillWord has as many ones as zeros.
const fillWord = 0x3C5AA5C3

// Validate returns an error for an unknown kind, or a size that is not a positive multiple of 4 bytes.
func (t Traffic) Validate() error {
	switch {
	case t.Kind > Launch:
		return fmt.Errorf("traffic of kind %d: it is Copy, Fill or Launch", t.Kind)
	case t.Kind != Launch && (t.Bytes <= 0 || t.Bytes%4 != 0):
		return fmt.Errorf("%d bytes of traffic: give a positive multiple of 4", t.Bytes)
	}
	return nil
}

// moved is the number of bytes that one execution reads and writes.
func (t Traffic) moved() int64 {
	switch t.Kind {
	case Copy:
		return 2 * t.Bytes
	case Fill:
		return t.Bytes
	default:
		return 4
	}
}

// transfer is traffic on the card.
type transfer struct {
	Traffic
	device   *Device
	from, to uint64 // different memory; from is used by Copy only
}

func (d *Device) newTransfers(traffic []Traffic) ([]*transfer, error) {
	var transfers []*transfer
	for _, t := range traffic {
		if err := t.Validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		if t.Kind == Launch {
			t.Bytes = t.moved()
		}
		transfers = append(transfers, &transfer{Traffic: t, device: d})
	}
	return transfers, nil
}

// transfers allocates memory for each. When ctx ends it stops between two.
func (a *arena) transfers(ctx context.Context, transfers []*transfer) error {
	for _, t := range transfers {
		bytes := int(t.Bytes)
		steps := []func() error{ctx.Err, func() (err error) { t.to, err = a.alloc(bytes); return err }}
		if t.Kind == Copy {
			steps = append(steps,
				func() (err error) { t.from, err = a.alloc(bytes); return err },
				func() error { return a.device.randomise(t.from, bytes) },
			)
		}
		if err := first(steps...); err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	return nil
}

// randomise fills memory with random bits. Zeros, which the memory may hold, would cost least energy to
// move.
func (d *Device) randomise(address uint64, bytes int) error {
	block := make([]byte, min(bytes, stagingBytes))
	_, _ = rand.NewChaCha8([32]byte{}).Read(block) // never fails
	if err := d.upload(address, block); err != nil {
		return err
	}
	return d.spread(address, len(block), bytes)
}

// launch queues the traffic once.
func (t *transfer) launch(int) (err error) {
	a, stream := t.device.api, t.device.stream
	if t.Kind == Copy {
		err = a.check("cuMemcpyDtoDAsync", a.cuMemcpyDtoDAsync(t.to, t.from, uint64(t.Bytes), stream))
	} else {
		err = t.device.fill(t.to, t.Bytes)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	return nil
}

// fill queues a fill of so many bytes, a multiple of 4.
func (d *Device) fill(address uint64, bytes int64) error {
	return d.api.check("cuMemsetD32Async", d.api.cuMemsetD32Async(address, fillWord, uint64(bytes/4), d.stream))
}
