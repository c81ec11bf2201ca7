package cuda

import (
	"context"
	"errors"
)

// Traffic is work without arithmetic, which moves bytes within the card.
type Traffic struct {
	Name  string
	Kind  TrafficKind
	Bytes int64 // of one execution: read and written for Copy, written for Fill; ignored for Launch
}

// TrafficKind says what moves.
type TrafficKind uint8

const (
	// Copy reads Bytes and writes them elsewhere: in memory, or within the L2 cache where both together
	// have room there.
	Copy TrafficKind = iota
	// Fill writes Bytes.
	Fill
	// Launch writes 4 bytes: the card runs at its clock and does next to nothing.
	Launch
)

// NewMix is NewBatch for products and traffic together: one pass runs all products, then all traffic.
// Either may be empty, not both.
func (d *Device) NewMix(ctx context.Context, name string, products []Product, traffic []Traffic, o Options) (*Batch, error) {
	return nil, errors.New("not built")
}
