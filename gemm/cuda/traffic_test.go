package cuda

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestMixMovesBytes(t *testing.T) {
	c := newCard(t)
	c.product, c.transfer = 100*time.Microsecond, 10*time.Microsecond
	d := openFake(t, c)
	const size = stagingBytes + 1<<20 // more than the block that is repeated
	m, err := d.NewMix(t.Context(), "mix", products(small...), []Traffic{
		{Name: "copy", Kind: Copy, Bytes: size}, {Name: "fill", Kind: Fill, Bytes: 12}, {Name: "launch", Kind: Launch, Bytes: 1 << 50},
	}, Options{Repeat: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	moved := m.work[2].(*transfer)
	source, target := c.region(moved.from, size), c.region(moved.to, size)
	if zeros := bytes.Count(source, []byte{0}); zeros > size/128 {
		t.Errorf("%d zeros among %d random bytes", zeros, size)
	}
	clear(target)
	launched, filled := c.launched, c.filled
	if err := errors.Join(m.Start(2), m.Wait(context.Background())); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(source, target) {
		t.Error("the copy is not its source")
	}
	filling := m.work[3].(*transfer)
	for i := range 3 {
		if word := binary.LittleEndian.Uint32(c.region(filling.to, 12)[4*i:]); word != fillWord {
			t.Errorf("word %d is %#x", i, word)
		}
	}
	if m.Passes() != 3 || c.launched-launched != 2*3*2 || c.filled-filled != 2*3*2 {
		t.Errorf("%d passes, %d products, %d fills in 2 replays", m.Passes(), c.launched-launched, c.filled-filled)
	}
	took, err := m.Elapsed()
	if want := 2 * 3 * (2*c.product + 3*c.transfer); err != nil || (took-want).Abs() > time.Microsecond {
		t.Errorf("%v, %v; want %v", took, err, want)
	}
	if ops := 3 * (small[0].Ops() + small[1].Ops()); m.Ops() != ops || m.WeightBytes() != 6*8*2+5*6*2 || m.Copies() != 1 {
		t.Errorf("%v operations, %d bytes of weights, %d copies", m.Ops(), m.WeightBytes(), m.Copies())
	}
	if found, err := m.Check(t.Context()); err != nil || len(found) != 2 {
		t.Error(found, err)
	}
}

func TestTrafficAlone(t *testing.T) {
	c := newCard(t)
	d := openFake(t, c)
	before := len(c.alive)
	m, err := d.NewMix(t.Context(), "launches", nil, []Traffic{{Name: "launch", Kind: Launch}}, Options{Cold: true, Stack: 2, Repeat: 5})
	if err != nil {
		t.Fatal(err)
	}
	if m.Ops() != 0 || m.WeightBytes() != 0 || m.Copies() != 1 || m.Passes() != 5 || len(m.Kernels()) != 0 {
		t.Errorf("%v operations, %d bytes of weights, %d copies, %d passes", m.Ops(), m.WeightBytes(), m.Copies(), m.Passes())
	}
	if found, err := m.Check(t.Context()); err != nil || len(found) != 0 {
		t.Error(found, err)
	}
	if err := errors.Join(m.Start(1), m.Wait(context.Background()), m.Close()); err != nil {
		t.Error(err)
	}
	if after := len(c.alive); after != before {
		t.Errorf("%d things on the card, %d before", after, before)
	}
}

func TestMixRefuses(t *testing.T) {
	d := openFake(t, newCard(t))
	for text, traffic := range map[string][]Traffic{
		"batch mix: give at least one product or traffic pattern": nil,
		"batch mix: all: traffic of 0 bytes":                      {{Name: "all", Kind: Copy}},
		"batch mix: odd: traffic of 6 bytes":                      {{Name: "odd", Kind: Fill, Bytes: 6}},
		"batch mix: other: unknown kind of traffic 6: use":        {{Name: "other", Kind: Rest + 1, Bytes: 4}},
		"give a positive multiple of 16":                          {{Name: "read", Kind: Read, Bytes: 24}},
		"is too large for Read":                                   {{Name: "read", Kind: Read, Bytes: 1 << 40}},
		"-1 blocks and 0 rounds":                                  {{Name: "few", Kind: Spin, Blocks: -1}},
		"rest of 0s":                                              {{Name: "rest", Kind: Rest}},
	} {
		if _, err := d.NewMix(t.Context(), "mix", nil, traffic, Options{}); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.NewMix(ctx, "mix", nil, []Traffic{{Name: "copy", Kind: Copy, Bytes: 4}}, Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestTrafficKernels: each kind's kernel is launched on the requested number of blocks, and reads memory of random bits or zeros.
func TestTrafficKernels(t *testing.T) {
	c := newCard(t)
	d := openFake(t, c)
	const size = 1 << 16
	m, err := d.NewMix(t.Context(), "mix", nil, []Traffic{
		{Name: "read", Kind: Read, Bytes: size, Rounds: 7, Blocks: 3}, {Name: "zeros", Kind: Read, Bytes: size, Zeros: true},
		{Name: "spin", Kind: Spin, Rounds: 5, Blocks: 8}, {Name: "rest", Kind: Rest, Time: 50 * time.Microsecond, Blocks: 9},
	}, Options{Repeat: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	c.launches = nil
	if err := errors.Join(m.Start(1), m.Wait(context.Background())); err != nil {
		t.Fatal(err)
	}
	if len(c.launches) != 4 {
		t.Fatalf("%+v", c.launches)
	}
	for i, want := range []struct {
		name            string
		blocks, threads int
		parameter       string
		value           any
	}{
		{"read_memory", 3, 1024, "rounds", 7}, {"read_memory", d.info.SMs, 1024, "vectors", size / 16}, {"spin", 8, 128, "rounds", 5}, {"rest", 1, 1, "nanoseconds", 50_000},
	} {
		if l := c.launches[i]; l.Name != want.name || int(l.Blocks[0]) != want.blocks || int(l.Threads[0]) != want.threads || l.Argument(want.parameter) != want.value {
			t.Errorf("%+v, want %+v", l, want)
		}
	}
	for i, most := range map[int]int{0: size / 128, 1: size} {
		from := uint64(c.launches[i].Argument("from").(Address))
		if zeros := bytes.Count(c.region(from, size), []byte{0}); zeros > most || most == size && zeros != size {
			t.Errorf("%d zeros in %s", zeros, m.work[i].(*transfer).Name)
		}
	}
}
