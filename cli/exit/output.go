package exit

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/internal/printable"
)

// Output is a command's standard output. It keeps the first error of writing for [Output.Close], so commands need not
// check each print. Output escapes characters that control a terminal, because names in a model may contain them.
type Output struct {
	io.Writer
	mu      sync.Mutex
	err     error
	held    *bytes.Buffer // nil: output is written at once
	unsaved atomic.Bool   // an interrupt must wait; see SetUnsaved
}

// NewOutput returns an output that writes to w.
func NewOutput(w io.Writer) *Output { return &Output{Writer: printable.NewWriter(w)} }

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.held != nil {
		return o.held.Write(p)
	}
	n, err := o.Writer.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// Close returns the first error of writing. Later output is discarded, because an interrupted command may still write.
func (o *Output) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Writer = io.Discard
	return o.err
}

// Unsaved reports whether an interrupt must wait for a write.
func (o *Output) Unsaved() bool { return o.unsaved.Load() }

// SetUnsaved sets whether an interrupt must wait until the command has written its measurements.
func SetUnsaved(c *cli.Context, unsaved bool) {
	if o, ok := c.App.Writer.(*Output); ok {
		o.unsaved.Store(unsaved)
	}
}
