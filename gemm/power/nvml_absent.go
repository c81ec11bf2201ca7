//go:build !cgo || !linux || nogpu

package power

// Open fails with ErrNoCGO. To measure, build on Linux with CGO_ENABLED=1 and without -tags nogpu.
func Open(string) (Card, error) { return nil, ErrNoCGO }
