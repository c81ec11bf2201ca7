package apply

import (
	"context"
	"sync"

	"github.com/lowtoggle/lowtoggle/weights"
)

// hashAhead is how many bytes of a source in an object store are hashed before their result is written. If hashing ran away, the
// workers would read the same bytes again.
const hashAhead = 16 << 20

// pace holds back the digest of a source in an object store. A nil pace holds nothing back.
type pace struct {
	mu            sync.Mutex
	source, total int64 // bytes of the source's data, and of the result's
	written       int64
	more          chan struct{} // closed when more is written
}

// newPace returns the pace of a shard of whose result total bytes are written meanwhile; nil for a file on a disk.
func newPace(src *weights.File, total int64) *pace {
	if !weights.IsURL(src.Path) {
		return nil
	}
	return &pace{source: src.DataSize(), total: total, more: make(chan struct{})}
}

// wrote notes that n more bytes of the result are written.
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

// wait waits until the bytes of the source from at on may be hashed.
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
