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
		{"copy", Copy, size}, {"fill", Fill, 12}, {"launch", Launch, 1 << 50},
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
		"batch mix: no products and no traffic":      nil,
		"batch mix: all: 0 bytes of traffic":         {{"all", Copy, 0}},
		"batch mix: odd: 6 bytes of traffic":         {{"odd", Fill, 6}},
		"batch mix: other: traffic of kind 3: it is": {{"other", Launch + 1, 4}},
	} {
		if _, err := d.NewMix(t.Context(), "mix", nil, traffic, Options{}); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.NewMix(ctx, "mix", nil, []Traffic{{"copy", Copy, 4}}, Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
