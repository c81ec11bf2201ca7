package cuda

import "runtime"

// thread runs functions one at a time on one operating-system thread, because a CUDA context is bound to
// its thread.
type thread struct {
	work chan func()
	quit chan struct{}
}

func startThread() *thread {
	t := &thread{make(chan func()), make(chan struct{})}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for {
			select {
			case f := <-t.work:
				f()
			case <-t.quit:
				return
			}
		}
	}()
	return t
}

// do runs f and returns its error, or errClosed after stop. f must not call do.
func (t *thread) do(f func() error) error {
	done := make(chan error, 1)
	select {
	case t.work <- func() { done <- f() }:
		return <-done
	case <-t.quit:
		return errClosed
	}
}

// stop ends the thread. It must be called once, and not from f.
func (t *thread) stop() { close(t.quit) }
