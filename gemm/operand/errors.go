package operand

import (
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/weights"
)

// ErrNoFile is the error for sources whose file or folder does not exist.
var ErrNoFile = errors.New("there is no such file or folder")

// noFile returns an ErrNoFile that says how to download path, if it may be a model's name on the Hugging Face Hub.
func noFile(path string) error {
	if hub := weights.FromHub(path); hub != "" {
		return fmt.Errorf("%s: %w: %s", path, ErrNoFile, hub)
	}
	return fmt.Errorf("%s: %w", path, ErrNoFile)
}

// NotFoundError is the error for a source that names a tensor or layers that the model does not have.
type NotFoundError struct {
	Path string // of the model
	text string
}

func (e *NotFoundError) Error() string { return e.text }

func noTensor(path, name string) error {
	return &NotFoundError{path, fmt.Sprintf("%s has no tensor %q", path, name)}
}

// ShapeError is the error for N and K of [Options] that differ from a source's shape.
type ShapeError struct{ text string }

func (e *ShapeError) Error() string { return e.text }

// TypeError is the error for a layer whose stored type no GPU multiplies, if [Options] name no other type.
type TypeError struct {
	Layer string
	DType weights.DType
}

func (e *TypeError) Error() string {
	return fmt.Sprintf("%s: no GPU multiplies %v directly", e.Layer, e.DType)
}

// ProblemError is the error for an impossible product, for example if its sizes are too large for its type.
type ProblemError struct{ err error }

func (e *ProblemError) Error() string { return e.err.Error() }

func (e *ProblemError) Unwrap() error { return e.err }
