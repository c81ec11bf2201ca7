// Package digest computes the SHA-256 sums of two messages at a time. The instructions for one message wait for each other:
// with those of another message between them, a processor takes little longer than for one.
package digest

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// Pair hashes two messages. Both are at first empty.
type Pair struct {
	messages [2]message
	plain    [2]hash.Hash // instead of messages, on a machine without the kernel
}

// New returns the pair of two empty messages.
func New() *Pair {
	if !hasKernel {
		return &Pair{plain: [2]hash.Hash{sha256.New(), sha256.New()}}
	}
	return &Pair{messages: [2]message{{state: initial}, {state: initial}}}
}

// Write appends data to both messages. It is fastest if as much is appended to either.
func (p *Pair) Write(a, b []byte) {
	if p.plain[0] != nil {
		p.plain[0].Write(a)
		p.plain[1].Write(b)
		return
	}
	x, y := &p.messages[0], &p.messages[1]
	a, b = x.fill(a), y.fill(b)
	if n := min(len(a), len(b)) / blockBytes; n > 0 {
		blocks(&x.state, &y.state, &a[0], &b[0], n)
		a, b = a[n*blockBytes:], b[n*blockBytes:]
	}
	x.write(a)
	y.write(b)
}

// Sums returns the sums of the messages so far.
func (p *Pair) Sums() (a, b [sha256.Size]byte) {
	if p.plain[0] != nil {
		return [sha256.Size]byte(p.plain[0].Sum(nil)), [sha256.Size]byte(p.plain[1].Sum(nil))
	}
	return p.messages[0].sum(), p.messages[1].sum()
}

const blockBytes = 64

// initial is the state of an empty message, in the order of the instructions: F, E, B, A, H, G, D, C.
var initial = [8]uint32{0x9b05688c, 0x510e527f, 0xbb67ae85, 0x6a09e667, 0x5be0cd19, 0x1f83d9ab, 0xa54ff53a, 0x3c6ef372}

// places are where the words of a sum lie in a state.
var places = [8]int{3, 2, 7, 6, 1, 0, 5, 4}

// message is one of two messages.
type message struct {
	state [8]uint32
	rest  [blockBytes]byte // its last bytes, which do not fill a block
	size  uint64           // of the whole message
}

// fill completes the block of the last bytes, if there are any, and returns the data that is left.
func (m *message) fill(data []byte) []byte {
	have := m.size % blockBytes
	m.size += uint64(len(data))
	if have == 0 {
		return data
	}
	n := copy(m.rest[have:], data)
	if have+uint64(n) == blockBytes {
		m.hash(m.rest[:])
	}
	return data[n:]
}

// write hashes the data after fill, and keeps what does not fill a block.
func (m *message) write(data []byte) {
	n := len(data) / blockBytes * blockBytes
	if n > 0 {
		m.hash(data[:n])
	}
	copy(m.rest[:], data[n:])
}

// hash hashes whole blocks, beside ones that do not count.
func (m *message) hash(data []byte) {
	var other [8]uint32
	blocks(&m.state, &other, &data[0], &data[0], len(data)/blockBytes)
}

// sum is the sum of the message. It changes a copy.
func (m message) sum() (sum [sha256.Size]byte) {
	var end [blockBytes + 8]byte
	end[0] = 0x80
	bits, padding := m.size*8, blockBytes-(m.size+8)%blockBytes
	binary.BigEndian.PutUint64(end[padding:], bits)
	m.write(m.fill(end[:padding+8]))
	for i, place := range places {
		binary.BigEndian.PutUint32(sum[4*i:], m.state[place])
	}
	return sum
}
