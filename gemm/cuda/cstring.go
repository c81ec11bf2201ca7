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

// text returns a NUL-terminated string in a buffer that a library has filled.
func text(b []byte) string {
	s, _, _ := bytes.Cut(b, []byte{0})
	return string(s)
}
