//go:build !amd64 || purego

package sgemm

// kernels are none: there is the plain twin.
func kernels() []method { return nil }
