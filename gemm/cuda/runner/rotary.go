package runner

import (
	"math"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/decoder"
)

// rotary is rotary positions on the card.
type rotary struct {
	*decoder.Rotary
	short, long cuda.Address // tables of cosines and sines; long is 0 if there is only one table
}

// turns is the state of rotary positions that all attention layers of a model share: tables of cosines and sines by
// frequencies, for all positions of the longest sequence, and the index of each attention layer.
type turns struct {
	memory    *cuda.Memory
	positions int
	tables    map[string]cuda.Address
	places    map[*decoder.Attention]int
}

func newTurns(d *decoder.Decoder, memory *cuda.Memory) *turns {
	t := &turns{memory: memory, tables: map[string]cuda.Address{}, places: map[*decoder.Attention]int{}}
	for p := range parts(d) {
		if p.Attention != nil {
			t.places[p.Attention] = len(t.places)
		}
	}
	return t
}

func (l *loader) rotary(a *decoder.Attention, t *turns) (*rotary, error) {
	r := &rotary{Rotary: a.Rotary}
	var err error
	if r.short, err = t.table(l, a.Rotary.Frequencies); err != nil || a.Rotary.Long == nil {
		return r, err
	}
	r.long, err = t.table(l, *a.Rotary.Long)
	return r, err
}

// table returns the address of a table with the cosines and then the sines of each position. Layers with the same
// frequencies share a table.
func (t *turns) table(l *loader, f decoder.Frequencies) (cuda.Address, error) {
	key := string(bytesOf(append([]float32{f.Length}, f.Radians...)))
	if at, ok := t.tables[key]; ok {
		return at, nil
	}
	values := make([]float32, 0, 2*t.positions*len(f.Radians))
	for p := range t.positions {
		var sines []float32
		for _, r := range f.Radians {
			s, c := math.Sincos(float64(float32(p) * r))
			values = append(values, float32(c)*f.Length)
			sines = append(sines, float32(s)*f.Length)
		}
		values = append(values, sines...)
	}
	shared := *l
	shared.memory = t.memory
	at, err := shared.floats(values)
	if err == nil {
		t.tables[key] = at
	}
	return at, err
}
