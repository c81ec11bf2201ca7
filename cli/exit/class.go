package exit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"

	"github.com/lowtoggle/lowtoggle/bench/probe"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/serve"
	"github.com/lowtoggle/lowtoggle/gemm/sweep"
	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/internal/lock"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// Class is the kind of an error. Scripts rely on the names.
type Class string

// Classes of errors.
const (
	ClassUsage        Class = "usage"         // the command line is wrong
	ClassInput        Class = "input"         // a file or folder to read is absent, damaged or unsuitable
	ClassOutput       Class = "output"        // the output cannot be written where the command line says
	ClassOutputExists Class = "output-exists" // the output's file or folder exists already
	ClassIO           Class = "io"            // the operating system failed to read or write
	ClassTemporary    Class = "temporary"     // the same command may succeed if run again; exit status 75
	ClassNoGPU        Class = "no-gpu"        // there is no GPU, or its energy cannot be read
	ClassGPU          Class = "gpu"           // the GPU is in use, out of memory, or lacks a feature
	ClassServer       Class = "server"        // a measured server answers with an error, or not at all
	ClassInterrupted  Class = "interrupted"   // a signal ended the command
	ClassShortfall    Class = "shortfall"     // done, but a check failed or a budget was not met
	ClassInternal     Class = "internal"      // a defect of lowtoggle
	ClassFailed       Class = "failed"        // any other error
)

// hints says what to do next, for each class of errors.
var hints = map[Class]string{
	ClassUsage:        "lowtoggle --help lists the commands",
	ClassInput:        "check the file that the message names, or name another one",
	ClassOutput:       "choose another place for the output",
	ClassOutputExists: "choose another name, or move the existing file or folder away",
	ClassTemporary:    "run the same command again",
	ClassIO:           "check the disk, its free space and the permissions, and run the command again",
	ClassNoGPU:        "run the command on a machine with an NVIDIA GPU and its driver; lowtoggle predict needs no GPU",
	ClassGPU:          "correct what the message names, such as other programs on the GPU, and run the command again",
	ClassServer:       "check the server's log, and run the command again",
	ClassInterrupted:  "run the command again",
	ClassShortfall:    "read the report, which names the failed check or the missed budget",
	ClassInternal:     "this is a defect of lowtoggle: report the message to its authors",
	ClassFailed:       "correct what the message names, and run the command again",
}

// Problem is an error as --json prints it, in the document's field "error".
type Problem struct {
	Class   Class  `json:"class"`
	Message string `json:"message"`          // the same text as on standard error
	File    string `json:"file,omitempty"`   // file or folder that the error is about
	Tensor  string `json:"tensor,omitempty"` // tensor that the error is about
	Offset  *int64 `json:"offset,omitempty"` // in bytes from the start of the file
	Hint    string `json:"hint"`             // what to do next
	Status  int    `json:"status"`           // exit status
}

// NewProblem describes an error. The hint is that of the error's class.
func NewProblem(err error, message string) *Problem {
	p := &Problem{Class: classOf(err), Message: message, Status: Status(err)}
	p.Hint = hints[p.Class]
	if e, ok := errors.AsType[outputError](err); ok && e.replaceable {
		p.Hint = "choose a new folder, or replace the old one with --force"
	}
	p.place(err, p.Class == ClassOutput || p.Class == ClassOutputExists)
	return p
}

// Sentinel errors that belong to two classes.
var (
	gpuErrors   = []error{cuda.ErrOutOfMemory, cuda.ErrNoCompiler, cuda.ErrNoKernel, power.ErrNotPermitted, power.ErrCounterStill, sweep.ErrInUse, lock.ErrHeld}
	inputErrors = []error{fs.ErrNotExist, plan.ErrInvalid, arch.ErrConfig, arch.ErrUnknownFamily, bounded.ErrTooLarge, bounded.ErrNotFile, operand.ErrNoFile, transform.ErrCard}
)

func classOf(err error) Class {
	switch Status(err) {
	case Short:
		return ClassShortfall
	case WrongUsage:
		return ClassUsage
	case NoGPU:
		return ClassNoGPU
	case TryAgain:
		return ClassTemporary
	}
	switch {
	case is[*panicError](err):
		return ClassInternal
	case errors.Is(err, context.Canceled):
		return ClassInterrupted
	case errors.Is(err, fs.ErrExist):
		return ClassOutputExists
	case is[outputError](err):
		return ClassOutput
	case errors.Is(err, fs.ErrNotExist):
		return ClassInput
	case is[syscall.Errno](err) || errors.Is(err, syscall.ENOSPC):
		return ClassIO
	case errors.Is(err, apply.ErrUnfinished):
		return ClassOutputExists
	case errors.Is(err, apply.ErrOut):
		return ClassOutput
	case isAny(err, gpuErrors):
		return ClassGPU
	case is[serve.StallError](err), is[serve.StatusError](err), is[net.Error](err):
		return ClassServer
	case isAny(err, inputErrors), is[*weights.FormatError](err), is[*weights.PlaceError](err), is[*pattern.SyntaxError](err), is[*probe.TableError](err),
		is[*operand.NotFoundError](err), is[*operand.ShapeError](err), is[*operand.TypeError](err), is[*operand.ProblemError](err),
		is[*json.SyntaxError](err), is[*json.UnmarshalTypeError](err):
		return ClassInput
	}
	return ClassFailed
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func isAny(err error, list []error) bool {
	for _, e := range list {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// place sets the file, tensor and offset that an error names. Of nested errors with a place, the innermost counts; if
// outer is true, the outermost. Of joined errors, the first one with a place counts.
func (p *Problem) place(err error, outer bool) {
	file, tensor, offset := "", "", int64(-1)
	switch e := err.(type) {
	case *weights.FormatError:
		file, tensor, offset = e.File, e.Tensor, e.Offset
	case *weights.PlaceError:
		file, tensor = e.File, e.Tensor
	case *fs.PathError:
		file = e.Path
	case *probe.TableError:
		file = e.File
	}
	if file != "" && (p.File == "" || !outer) {
		p.File = file
	}
	if tensor != "" {
		p.Tensor = tensor
	}
	if offset >= 0 {
		p.Offset = &offset
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			p.place(inner, outer)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			found := Problem{}
			if found.place(inner, outer); found.File != "" {
				p.place(inner, outer)
				return
			}
		}
	}
}

// outputError is an error about the path of an output.
type outputError struct {
	error
	exists      bool
	replaceable bool // by --force
}

func (e outputError) Unwrap() error        { return e.error }
func (e outputError) Is(target error) bool { return e.exists && target == fs.ErrExist }

// OutputError marks an error about the path of an output.
func OutputError(err error) error { return outputError{error: err} }

// OutputExists marks an error about an output that exists already.
func OutputExists(err error) error { return outputError{error: err, exists: true} }

// OutputReplaceable marks an error about an output that exists already and that --force replaces.
func OutputReplaceable(err error) error { return outputError{err, true, true} }

// panicError is the error of a command that panicked.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("internal error: %v", e.value) }

// Panicked returns the error of a panic. value is the result of recover.
func Panicked(value any) error { return &panicError{value} }
