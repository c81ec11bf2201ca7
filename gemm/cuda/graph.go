package cuda

import "errors"

// capture records what f queues on the device's stream as a graph, without running it. It belongs
// on the device's thread, and f must only launch kernels that have run before, so that nothing is
// loaded while recording.
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

// event creates an event that records time.
func (d *Device) event() (event uintptr, err error) {
	err = d.api.check("cuEventCreate", d.api.cuEventCreate(&event, eventDefault))
	return event, err
}

// mark records event behind everything queued so far.
func (d *Device) mark(event uintptr) error {
	return d.api.check("cuEventRecord", d.api.cuEventRecord(event, d.stream))
}
