package runner

import (
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
)

// cache is the KV cache of some sequences: keys and values for every attention layer of a model.
type cache struct {
	capacity int // largest number of tokens of a sequence
	keys     []cuda.Address
	values   []cuda.Address
}

// newCache allocates a cache for the given number of sequences, each of at most capacity tokens. It must be called within Device.Do.
func (m *Model) newCache(memory *cuda.Memory, sequences, capacity int) (*cache, error) {
	c := &cache{capacity: capacity}
	for p := range parts(m.decoder) {
		a := p.Attention
		if a == nil {
			continue
		}
		rows := sequences * a.KV * capacity
		keys, err := memory.Alloc(rows * a.Size * m.act.Bytes())
		if err != nil {
			return nil, err
		}
		values, err := memory.Alloc(rows * a.ValueSize * m.act.Bytes())
		if err != nil {
			return nil, err
		}
		c.keys, c.values = append(c.keys, keys), append(c.values, values)
	}
	return c, nil
}

// of returns the keys and values of an attention.
func (c *cache) of(place int) (keys, values cuda.Address) { return c.keys[place], c.values[place] }

// from returns the part of the cache that starts with the given sequence.
func (c *cache) from(m *Model, sequence int) *cache {
	part := &cache{capacity: c.capacity}
	i := 0
	for p := range parts(m.decoder) {
		if a := p.Attention; a != nil {
			rows := sequence * a.KV * c.capacity * m.act.Bytes()
			part.keys, part.values = append(part.keys, c.keys[i].Plus(rows*a.Size)), append(part.values, c.values[i].Plus(rows*a.ValueSize))
			i++
		}
	}
	return part
}
