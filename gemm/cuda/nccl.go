package cuda

import (
	"errors"
	"fmt"
	"unsafe"
)

// ErrNoNCCL is the error of a machine without a usable NCCL. Such an error is also an [ErrNoGPU].
var ErrNoNCCL = errors.New("no usable NCCL")

// withoutNCCL is an [ErrNoNCCL] that errors.Is also takes for an [ErrNoGPU].
type withoutNCCL struct{ error }

func (e withoutNCCL) Is(target error) bool { return target == ErrNoGPU }
func (e withoutNCCL) Unwrap() error        { return e.error }

func noNCCL(format string, args ...any) error {
	return withoutNCCL{fmt.Errorf("%w: %w", ErrNoNCCL, fmt.Errorf(format, args...))}
}

// minNCCL is the oldest supported version, in the format of ncclGetVersion. It is the first version with BF16.
const minNCCL = 21000

// nccl holds the functions of NCCL that this package calls, with C's types.
type nccl struct {
	ncclGetVersion     func(version *int32) int32
	ncclGetErrorString func(r int32) string
	ncclCommInitAll    func(comms *uintptr, count int32, devices *int32) int32
	ncclCommDestroy    func(comm uintptr) int32
	ncclAllReduce      func(send, receive uint64, count uint64, element, op int32, comm, stream uintptr) int32
	ncclAllGather      func(send, receive uint64, count uint64, element int32, comm, stream uintptr) int32
}

// Constants of nccl.h.
const (
	ncclSum  = 0
	ncclBF16 = 9
)

func (n *nccl) symbols() []symbol {
	return []symbol{
		{"ncclGetVersion", &n.ncclGetVersion},
		{"ncclGetErrorString", &n.ncclGetErrorString},
		{"ncclCommInitAll", &n.ncclCommInitAll},
		{"ncclCommDestroy", &n.ncclCommDestroy},
		{"ncclAllReduce", &n.ncclAllReduce},
		{"ncclAllGather", &n.ncclAllGather},
	}
}

// loadNCCL opens NCCL from the loader's path, a CUDA toolkit or a Python package.
func loadNCCL(o opener, m machine) (*nccl, error) {
	n := new(nccl)
	path, err := bindFirst(o, m, "NVIDIA's NCCL", []string{"libnccl.so.2"}, m.cudaFolders(), n.symbols(),
		"install libnccl2, or the Python package nvidia-nccl-cu12 (nvidia-nccl-cu13 for a driver of CUDA 13)")
	if err != nil {
		return nil, noNCCL("%w", err)
	}
	var version int32
	if err := n.check("ncclGetVersion", n.ncclGetVersion(&version)); err != nil {
		return nil, noNCCL("%s: %w", path, err)
	}
	if version < minNCCL {
		return nil, noNCCL("%s is version %s, but %s or later is needed: update NCCL", path, ncclVersion(version), ncclVersion(minNCCL))
	}
	return n, nil
}

func (n *nccl) check(call string, r int32) error {
	if r == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s (%d)", call, n.ncclGetErrorString(r), r)
}

// ncclVersion formats a version number: "2.27.3" for 22703.
func ncclVersion(v int32) string { return fmt.Sprintf("%d.%d.%d", v/10000, v%10000/100, v%100) }

// initAll creates a communicator for each card. It changes the current context of the calling thread.
func (n *nccl) initAll(ordinals []int32) ([]uintptr, error) {
	comms := make([]uintptr, len(ordinals))
	err := n.check("ncclCommInitAll", n.ncclCommInitAll(unsafe.SliceData(comms), int32(len(ordinals)), unsafe.SliceData(ordinals)))
	return comms, err
}
