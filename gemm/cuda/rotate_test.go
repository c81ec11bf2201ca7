package cuda

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
)

// filled is memory whose allocations hold one value each.
func filled(t *testing.T, d *Device, values []byte, sizes ...int) *Memory {
	t.Helper()
	m := d.NewMemory()
	do(t, d, func() error {
		for i, size := range sizes {
			at, err := m.Alloc(size)
			if err == nil {
				err = d.Upload(at, bytes.Repeat(values[i:i+1], size))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return m
}

func holds(t *testing.T, d *Device, m *Memory, values []byte, sizes ...int) {
	t.Helper()
	for i, size := range sizes {
		got := make([]byte, size)
		do(t, d, func() error { return d.Download(got, Address(m.addresses[i])) })
		if !bytes.Equal(got, bytes.Repeat(values[i:i+1], size)) {
			t.Errorf("allocation %d of %d bytes does not hold %d: %d … %d", i, size, values[i], got[0], got[size-1])
		}
	}
}

// TestRotate moves contents of several memories by one, in pieces, and leaves nothing behind.
func TestRotate(t *testing.T) {
	c := newCard(t)
	c.free = 1 << 40
	d := openFake(t, c)
	sizes := []int{3, bounceBytes + 5, 100}
	a, b, e := filled(t, d, []byte{1, 2, 3}, sizes...), filled(t, d, []byte{4, 5, 6}, sizes...), filled(t, d, []byte{7, 8, 9}, sizes...)
	before := c.kinds()["memory"]
	do(t, d, func() error { return d.Rotate(t.Context(), a, b, e) })
	holds(t, d, a, []byte{7, 8, 9}, sizes...)
	holds(t, d, b, []byte{1, 2, 3}, sizes...)
	holds(t, d, e, []byte{4, 5, 6}, sizes...)
	do(t, d, func() error { return errors.Join(d.Rotate(t.Context(), a), d.Rotate(t.Context())) })
	holds(t, d, a, []byte{7, 8, 9}, sizes...)
	if n := c.kinds()["memory"]; n != before {
		t.Errorf("%d allocations, %d before", n, before)
	}
	do(t, d, func() error { return errors.Join(a.Free(), b.Free(), e.Free()) })
}

// TestRotateRefuses memory of other sizes, and ends with the context's and the card's errors.
func TestRotateRefuses(t *testing.T) {
	c := newCard(t)
	d := openFake(t, c)
	a, b, short := filled(t, d, []byte{1, 2}, 8, 8), filled(t, d, []byte{3, 4}, 8, 8), filled(t, d, []byte{5}, 16)
	if err := d.Do(func() error { return d.Rotate(t.Context(), a, short) }); err == nil || err.Error() != "memory of 1 allocations (16 bytes in all) cannot be exchanged with memory of 2 allocations (16 bytes): the sizes must be equal" {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Do(func() error { return d.Rotate(ctx, a, b) }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	holds(t, d, a, []byte{1, 2}, 8, 8)
	c.fail["cuMemcpyDtoDAsync"] = 1
	if err := d.Do(func() error { return d.Rotate(t.Context(), a, b) }); err == nil || !strings.Contains(err.Error(), "cuMemcpyDtoDAsync") {
		t.Error(err)
	}
	delete(c.fail, "cuMemcpyDtoDAsync")
	do(t, d, func() error { return errors.Join(a.Free(), b.Free(), short.Free()) })
}
