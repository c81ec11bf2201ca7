//go:build !amd64 || purego

package sgemm

// kernels returns nil: there is only the loop in Go.
func kernels() []method { return nil }
