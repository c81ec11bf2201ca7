//go:build !amd64 || purego

package rounding

// vectors are none: there is the kernel's twin in Go.
const vectors = false

func nearest16(*float32, int, float32, *float32, int, uint32, uint32) int { panic("no kernel") }
