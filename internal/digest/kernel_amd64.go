//go:build !purego

package digest

import "golang.org/x/sys/cpu"

//go:generate go run -C _gen . -out ../kernel_amd64.s -stubs ../kernel_stub_amd64.go -pkg digest

// hasKernel says whether this machine has the kernel's instructions. One with AVX2 can say whether it has those of SHA.
var hasKernel = cpu.X86.HasAVX2 && hasSHA()
