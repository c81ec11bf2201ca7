package apply

import (
	"context"
	"sync"

	"github.com/lowtoggle/lowtoggle/weights"
)

// hashAhead is how far, in bytes of the source, hashing may run ahead of writing for a source in an object store.
// Otherwise the workers would have to read the same bytes again.
const hashAhead = 16 << 20

// pace limits how far ahead the digest of a source in an object store may run. A nil pace sets no limit.
type pace struct {
	mu            sync.Mutex
	source, total int64 // bytes of the source's data and of the result's data
	written       int64
	more          chan struct{} // closed when more bytes are written
}

// newPace returns the pace for a shard whose result has total bytes; nil for a source on a disk.
func newPace(src *weights.File, total int64) *pace {
	if !weights.IsURL(src.Path) {
		return nil
	}
	return &pace{source: src.DataSize(), total: total, more: make(chan struct{})}
}

// wrote records that n more bytes of the result are written.
func (p *pace) wrote(n int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.written += n
	close(p.more)
	p.more = make(chan struct{})
}

// wait waits until the bytes of the source at offset at may be hashed.
func (p *pace) wait(ctx context.Context, at int64) error {
	for p != nil {
		p.mu.Lock()
		near := float64(at-hashAhead)*float64(p.total) <= float64(p.written)*float64(p.source)
		more := p.more
		p.mu.Unlock()
		if near {
			break
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ctx.Err()
}
