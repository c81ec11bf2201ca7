package cuda

import (
	"bytes"
	"unsafe"
)

// cString copies a NUL-terminated string that a library owns; nil is empty.
func cString(p *byte) string {
	if p == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// text is what a library wrote into a buffer of ours, up to the NUL.
func text(b []byte) string {
	s, _, _ := bytes.Cut(b, []byte{0})
	return string(s)
}
