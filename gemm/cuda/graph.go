package cuda

import (
	"errors"
	"time"
)

// capture records the work that f queues on the device's stream as a graph, without running it. It must be called on
// the device's thread. f may only launch kernels that have run before, because a kernel cannot be loaded during
// recording.
func (d *Device) capture(f func() error) (exec uintptr, err error) {
	a := d.api
	if err := a.check("cuStreamBeginCapture", a.cuStreamBeginCapture(d.stream, captureThreadLocal)); err != nil {
		return 0, err
	}
	failed := f()
	var graph uintptr
	ended := a.check("cuStreamEndCapture", a.cuStreamEndCapture(d.stream, &graph))
	if graph != 0 {
		defer a.cuGraphDestroy(graph)
	}
	if err := errors.Join(failed, ended); err != nil {
		return 0, err
	}
	err = a.check("cuGraphInstantiateWithFlags", a.cuGraphInstantiate(&exec, graph, 0))
	return exec, err
}

// replay launches a graph n times.
func (d *Device) replay(exec uintptr, n int) error {
	for range n {
		if err := d.api.check("cuGraphLaunch", d.api.cuGraphLaunch(exec, d.stream)); err != nil {
			return err
		}
	}
	return nil
}

// took runs a graph n times and returns the mean time of one run.
func (d *Device) took(exec uintptr, n int) (once time.Duration, err error) {
	all, err := d.timed(func() error { return d.replay(exec, n) })
	return all / time.Duration(n), err
}

// timed returns the card's time for the work that f queues, and waits for it.
func (d *Device) timed(f func() error) (took time.Duration, err error) {
	t := &d.timeline
	var begin, end uintptr
	err = first(
		func() (err error) { begin, err = t.mark(); return err },
		f,
		func() (err error) { end, err = t.mark(); return err },
		d.sync,
		func() (err error) { took, err = d.between(begin, end); return err },
	)
	if err != nil {
		return 0, err
	}
	t.free = append(t.free, begin, end)
	return took, nil
}

// destroyGraph destroys a graph and sets exec to 0. It does nothing if exec is 0.
func (d *Device) destroyGraph(exec *uintptr) error {
	if *exec == 0 {
		return nil
	}
	err := d.api.check("cuGraphExecDestroy", d.api.cuGraphExecDestroy(*exec))
	*exec = 0
	return err
}

// event creates an event that records time.
func (d *Device) event() (event uintptr, err error) {
	err = d.api.check("cuEventCreate", d.api.cuEventCreate(&event, eventDefault))
	return event, err
}

// mark records event after everything queued so far.
func (d *Device) mark(event uintptr) error {
	return d.api.check("cuEventRecord", d.api.cuEventRecord(event, d.stream))
}

// happened reports whether the card has reached an event. After an error, the card will never reach it.
func (d *Device) happened(event uintptr) (bool, error) {
	r := d.api.cuEventQuery(event)
	if r == errorNotReady {
		return false, nil
	}
	return true, d.api.check("a kernel", r)
}

// between returns the card's time between two events, both of which must have been reached. The relative error is up to
// 3e-8, because the driver returns a float32.
func (d *Device) between(from, to uintptr) (time.Duration, error) {
	var ms float32
	err := d.api.check("cuEventElapsedTime", d.api.cuEventElapsedTime(&ms, from, to))
	return duration(ms), err
}
