//go:build !cgo || !linux || nogpu

package power

// Open fails with ErrNoCGO: build with CGO_ENABLED=1 on Linux, and without -tags nogpu, to measure.
func Open(string) (Card, error) { return nil, ErrNoCGO }
