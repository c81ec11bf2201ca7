package cli

import (
	"io"
	"sync"
	"sync/atomic"

	"github.com/urfave/cli/v2"
)

// output is a command's standard output. It remembers the first error of writing, so that commands need not check
// their prints: a lost report is a failure.
type output struct {
	io.Writer
	mu      sync.Mutex
	err     error
	unsaved atomic.Bool // see setUnsaved
}

// newOutput returns an output that writes to w.
func newOutput(w io.Writer) *output { return &output{Writer: w} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.Writer.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// close returns the first error of writing, and discards whatever an interrupted command still writes.
func (o *output) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Writer = io.Discard
	return o.err
}

// isUnsaved reports whether an interrupt must wait.
func (o *output) isUnsaved() bool { return o.unsaved.Load() }

// setUnsaved says whether an interrupt must wait until this command has written what it measured.
func setUnsaved(c *cli.Context, unsaved bool) {
	if o, ok := c.App.Writer.(*output); ok {
		o.unsaved.Store(unsaved)
	}
}
