// Package pairhash computes the SHA-256 of two streams at the same time. On processors with SHA instructions, one
// stream leaves these instructions half unused, because each waits for the one before. Two streams take little longer
// than one. Elsewhere, two goroutines compute large pieces, and one goroutine computes small ones.
package pairhash

import (
	"encoding"
	"encoding/binary"
	"hash"
	"sync"
)

// Write adds p to a, and q to b. a and b come from [sha256.New]. It is fastest if p and q have the same length of many
// blocks, and a and b have the same number of bytes before. p may be mapped memory that faults, q may not.
//
// [sha256.New]: https://pkg.go.dev/crypto/sha256#New
func Write(a, b hash.Hash, p, q []byte) {
	if kernel {
		p, q = writeBlocks(a, b, p, q)
	} else if len(p) >= leastApart && len(q) >= leastApart {
		var other sync.WaitGroup
		defer other.Wait()
		rest := q
		other.Go(func() { b.Write(rest) }) // not p: only the caller can handle a fault of mapped memory
		q = nil
	}
	a.Write(p)
	b.Write(q)
}

// leastApart is the number of bytes for which another goroutine is worth its start.
const leastApart = 64 << 10

// The form in which crypto/sha256 encodes a digest: a name, the state, the bytes of an incomplete block, and the number
// of bytes so far. Digests of another form are not written together.
const (
	name       = "sha\x03"
	blockSize  = 64
	stateAt    = len(name)
	lengthAt   = stateAt + 32 + blockSize
	formBytes  = lengthAt + 8
	leastPairs = 4 // blocks below which encoding the digests would take longer than the kernel saves
)

// form is an encoded digest.
type form [formBytes]byte

// writeBlocks adds the blocks that p and q have in common. It returns the bytes that are left.
func writeBlocks(a, b hash.Hash, p, q []byte) (restP, restQ []byte) {
	var x, y form
	p, okA := x.toBlock(a, p)
	q, okB := y.toBlock(b, q)
	n := min(len(p), len(q)) / blockSize
	if !okA || !okB || n < leastPairs {
		return p, q
	}
	s, t := x.state(), y.state()
	blocks(&s, &t, &p[0], &q[0], n)
	x.put(s, n)
	y.put(t, n)
	if a.(encoding.BinaryUnmarshaler).UnmarshalBinary(x[:]) != nil || b.(encoding.BinaryUnmarshaler).UnmarshalBinary(y[:]) != nil {
		panic("a digest cannot be restored from its own binary form")
	}
	return p[n*blockSize:], q[n*blockSize:]
}

// toBlock completes a digest's last block with bytes of p, and encodes the digest. It returns the rest of p. ok is false
// if the digest has an incomplete block still, or another form.
func (f *form) toBlock(h hash.Hash, p []byte) (rest []byte, ok bool) {
	if !f.read(h) {
		return p, false
	}
	if held := int(f.length() % blockSize); held > 0 {
		n := min(blockSize-held, len(p))
		h.Write(p[:n])
		p = p[n:]
		f.read(h)
	}
	return p, f.length()%blockSize == 0
}

// read encodes a digest. It returns false for another form.
func (f *form) read(h hash.Hash) bool {
	e, ok := h.(interface {
		encoding.BinaryAppender
		encoding.BinaryUnmarshaler
	})
	if !ok {
		return false
	}
	js, err := e.AppendBinary(f[:0])
	return err == nil && len(js) == len(f) && string(js[:stateAt]) == name
}

func (f *form) length() uint64 { return binary.BigEndian.Uint64(f[lengthAt:]) }

func (f *form) state() (s [8]uint32) {
	for i := range s {
		s[i] = binary.BigEndian.Uint32(f[stateAt+4*i:])
	}
	return s
}

// put sets the state after n more blocks.
func (f *form) put(s [8]uint32, n int) {
	for i, v := range s {
		binary.BigEndian.PutUint32(f[stateAt+4*i:], v)
	}
	binary.BigEndian.PutUint64(f[lengthAt:], f.length()+uint64(n)*blockSize)
}
