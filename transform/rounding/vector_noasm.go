//go:build !amd64 || purego

package rounding

// vectors is false: this build has no vector kernel.
const vectors = false

func nearest16(*float32, int, float32, *float32, int, uint32, uint32) int { panic("no kernel") }
