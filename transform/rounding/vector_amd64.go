//go:build !purego

package rounding

import "golang.org/x/sys/cpu"

//go:generate go run -C _gen . -out ../kernel_amd64.s -stubs ../kernel_stub_amd64.go -pkg rounding

// vectors reports whether this machine has the instructions of the vector kernel.
var vectors = cpu.X86.HasAVX512F
