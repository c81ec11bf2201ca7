package operand

import (
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/weights"
)

// ErrNoFile marks sources whose file or folder does not exist.
var ErrNoFile = errors.New("there is no such file or folder")

// NotFoundError says that a model has no tensor, or no layers, as a source names them.
type NotFoundError struct {
	Path string // of the model
	text string
}

func (e *NotFoundError) Error() string { return e.text }

func noTensor(path, name string) error {
	return &NotFoundError{path, fmt.Sprintf("%s has no tensor %q", path, name)}
}

// ShapeError says that N and K of [Options] are not those of the source with a shape of its own.
type ShapeError struct{ text string }

func (e *ShapeError) Error() string { return e.text }

// TypeError says that a layer's stored type is multiplied by no GPU, and no other type was chosen.
type TypeError struct {
	Layer string
	DType weights.DType
}

func (e *TypeError) Error() string {
	return fmt.Sprintf("%s: no GPU multiplies %v as it is", e.Layer, e.DType)
}

// ProblemError says that what was asked for is no product: its sizes are too large for its type.
type ProblemError struct{ err error }

func (e *ProblemError) Error() string { return e.err.Error() }

func (e *ProblemError) Unwrap() error { return e.err }
