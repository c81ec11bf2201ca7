package bucket

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
)

const (
	leastPart   = 8 << 20 // bytes of a part of an upload
	mostParts   = 10_000  // S3's limit of parts of an upload
	partsAtOnce = 3       // parts that are sent concurrently
)

// upload is an object that is being written, in parts of equal size. The object appears at Close.
type upload struct {
	ctx   context.Context
	end   context.CancelFunc
	f     *Folder
	name  string
	to    multipart
	begun bool  // the upload has sent a request
	size  int64 // bytes of a part
	want  int64 // bytes of the object
	wrote int64
	part  []byte // the part that is being filled
	free  chan []byte
	sent  sync.WaitGroup

	mu  sync.Mutex
	err error // first error of a part
}

// Create begins to write an object of n bytes. At most four parts of the object are in memory: 32 MiB, more for objects above 80
// GB.
func (f *Folder) Create(ctx context.Context, name string, n int64) weights.Output {
	var failed error
	if ctx == nil {
		ctx, failed = context.Background(), parallel.ErrNoContext
	}
	ctx, end := context.WithCancel(ctx)
	u := &upload{err: failed, ctx: ctx, end: end, f: f, name: name, to: f.protocol.multipart(f.key(name)), want: n, size: max(leastPart, (n/mostParts>>20+1)<<20), free: make(chan []byte, partsAtOnce+1)}
	for range partsAtOnce + 1 {
		u.free <- nil // allocated at its first use
	}
	return u
}

// Write appends data.
func (u *upload) Write(p []byte) (int, error) {
	total := len(p)
	for len(p) > 0 {
		if u.part == nil {
			if err := u.next(); err != nil {
				return total - len(p), err
			}
		}
		n := min(len(p), cap(u.part)-len(u.part))
		u.part = append(u.part, p[:n]...)
		u.wrote += int64(n)
		p = p[n:]
		if len(u.part) == cap(u.part) && u.want > u.size {
			if err := u.send(); err != nil {
				return total - len(p), err
			}
		}
	}
	return total, nil
}

// next waits for an empty buffer and makes it the part to fill.
func (u *upload) next() error {
	if u.wrote >= u.want {
		return fmt.Errorf("%s: more than the announced %d bytes were written", u.f.path(u.name), u.want)
	}
	select {
	case u.part = <-u.free:
	case <-u.ctx.Done():
		return u.failed()
	}
	if u.part == nil {
		u.part = make([]byte, 0, min(u.size, u.want))
	}
	u.part = u.part[:0]
	return u.failed()
}

// failed returns the first error of a part, or the context's error.
func (u *upload) failed() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err != nil {
		return u.err
	}
	return u.ctx.Err()
}

// send starts sending the full part.
func (u *upload) send() error {
	if !u.begun {
		if err := u.f.retry(u.ctx, writing, u.name, u.to.begin); err != nil {
			return err
		}
		u.begun = true
	}
	part, number := u.part, int((u.wrote+u.size-1)/u.size)
	u.part = nil
	u.sent.Go(func() {
		err := u.f.retry(u.ctx, writing, u.name, func(ctx context.Context) error { return u.to.part(ctx, number, part) })
		u.mu.Lock()
		defer u.mu.Unlock()
		if err != nil && u.err == nil {
			u.err = err
			u.end()
		}
		u.free <- part
	})
	return nil
}

// Close sends the rest of the data and makes the object appear. If data is missing, Close returns an error and the object does
// not appear.
func (u *upload) Close() error {
	if u.wrote != u.want {
		u.Abort()
		return fmt.Errorf("%s: %d bytes were written, but %d were announced", u.f.path(u.name), u.wrote, u.want)
	}
	if u.want <= u.size {
		defer u.end()
		return u.f.put(u.ctx, u.name, u.part, false)
	}
	var err error
	if len(u.part) > 0 {
		err = u.send()
	}
	u.sent.Wait()
	if err == nil {
		err = u.failed()
	}
	if err == nil {
		err = u.f.retry(u.ctx, writing, u.name, func(ctx context.Context) error { return u.to.complete(ctx, u.want) })
	}
	if err != nil {
		u.Abort()
	}
	u.end()
	return err
}

// abortTime is the longest time that Abort takes.
const abortTime = 5 * time.Second

// Abort cancels the upload and removes its parts, if the store answers. Otherwise a lifecycle rule of the bucket must remove them.
func (u *upload) Abort() {
	u.end()
	u.sent.Wait()
	if !u.begun {
		return
	}
	ctx, end := context.WithTimeout(context.WithoutCancel(u.ctx), abortTime)
	defer end()
	err := u.to.abort(ctx)
	if code, _ := u.f.protocol.failure(err); err == nil || code != "" {
		u.begun = false
	}
}
