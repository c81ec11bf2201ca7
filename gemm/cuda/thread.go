package cuda

import "runtime"

// thread runs functions one at a time on one operating-system thread, because a CUDA context is bound to its thread.
type thread struct {
	work chan task
	quit chan struct{} // closed after the last function
}

type task struct {
	run  func()
	last bool
}

func startThread() *thread {
	t := &thread{make(chan task), make(chan struct{})}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(t.quit)
		for f := range t.work {
			f.run()
			if f.last {
				return
			}
		}
	}()
	return t
}

// do runs f and returns its error. After the last function it returns errClosed. f must not call do.
func (t *thread) do(f func() error) error { return t.task(f, false) }

// end runs f as the last function. Functions that are still waiting do not run.
func (t *thread) end(f func() error) error { return t.task(f, true) }

func (t *thread) task(f func() error, last bool) error {
	done := make(chan error, 1)
	select {
	case t.work <- task{func() { done <- f() }, last}:
		return <-done
	case <-t.quit:
		return errClosed
	}
}
