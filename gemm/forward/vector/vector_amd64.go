//go:build !purego

package vector

import "golang.org/x/sys/cpu"

//go:generate go run -C _gen . -out ../kernel_amd64.s -stubs ../kernel_stub_amd64.go -pkg vector

// vectors says whether this machine has the instructions of the vector kernels.
var vectors = cpu.X86.HasAVX512F
