package operand

import (
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/weights"
)

// ErrNoFile is the error for sources whose file or folder does not exist.
var ErrNoFile = errors.New("there is no such file or folder")

// noFile returns an ErrNoFile. If path may be the name of a model on the Hugging Face Hub, the error says how to
// download the model.
func noFile(path string) error {
	if hub := weights.FromHub(path); hub != "" {
		return fmt.Errorf("%s: %w: %s", path, ErrNoFile, hub)
	}
	return fmt.Errorf("%s: %w: name a model's folder, or a safetensors file", path, ErrNoFile)
}

// NotFoundError is the error for a source that names a tensor or layer that the model does not have.
type NotFoundError struct {
	Path string // path of the model
	text string
}

func (e *NotFoundError) Error() string { return e.text }

func noTensor(path, name string) error {
	return &NotFoundError{path, fmt.Sprintf("%s has no tensor %q", path, name)}
}

// ShapeError is the error for N and K in [Options] that differ from a source's shape.
type ShapeError struct{ text string }

func (e *ShapeError) Error() string { return e.text }

// TypeError is the error for a layer whose stored type no GPU multiplies, if [Options].Type is not set.
type TypeError struct {
	Layer string
	DType weights.DType
}

func (e *TypeError) Error() string {
	return fmt.Sprintf("%s: lowtoggle does not multiply %v directly", e.Layer, e.DType)
}

// ProblemError is the error for an invalid product, for example if its sizes are too large for its type.
type ProblemError struct{ err error }

func (e *ProblemError) Error() string { return e.err.Error() }

func (e *ProblemError) Unwrap() error { return e.err }
