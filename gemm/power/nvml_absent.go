//go:build !cgo || !linux

package power

// Open fails with ErrNoCGO: build with CGO_ENABLED=1 on Linux to measure.
func Open(string) (Card, error) { return nil, ErrNoCGO }
