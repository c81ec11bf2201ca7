//go:build !purego

package pairhash

import "golang.org/x/sys/cpu"

//go:generate go run -C _gen . -out ../kernel_amd64.s -stubs ../kernel_stub_amd64.go -pkg pairhash

// kernel reports whether this machine has the kernel's instructions.
var kernel = cpu.X86.HasSSE41 && cpu.X86.HasSSSE3 && leaf7()&shaBit != 0

// shaBit is the bit of leaf7 for the SHA instructions.
const shaBit = 1 << 29
