package cuda

import (
	"context"
	"errors"
	"maps"
	"math"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// compile loads kernels; closing the device frees them.
func compile(t *testing.T, d *Device, source string) *Module {
	t.Helper()
	m, err := d.Compile(t.Context(), "scale.cu", source)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// kernel returns a kernel of the source scale.
func kernel(t *testing.T, d *Device, name string, shared int) *Function {
	t.Helper()
	f, err := compile(t, d, scale).Function(name, shared)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// sameKinds checks that the number of live objects of each kind has not changed.
func sameKinds(t *testing.T, c *card, before map[string]int) {
	t.Helper()
	if after := c.kinds(); !maps.Equal(before, after) {
		t.Errorf("alive on the card: %v, before: %v", after, before)
	}
}

// do runs f on the device's thread.
func do(t *testing.T, d *Device, f func() error) {
	t.Helper()
	if err := d.Do(f); err != nil {
		t.Fatal(err)
	}
}

// alloc allocates memory that closing the device frees.
func alloc(t *testing.T, d *Device, bytes int) (at Address) {
	t.Helper()
	do(t, d, func() (err error) { at, err = d.NewMemory().Alloc(bytes); return err })
	return at
}

// Arguments of every type reach the kernel, at the extremes of their range; sizes of 0 are 1.
func TestLaunchPassesArguments(t *testing.T) {
	c := newCard(t)
	d := openFake(t, c)
	f, empty := kernel(t, d, "scale", 0), kernel(t, d, "empty", 100)
	at := alloc(t, d, 64)
	arguments := [][]any{
		{at, at.Plus(16), math.MaxInt32, float32(math.Pi), math.Pi},
		{at.Plus(63), Address(0), math.MinInt32, float32(-0.5), math.MaxFloat64},
		{at, at, -1, float32(math.SmallestNonzeroFloat32), -math.SmallestNonzeroFloat64},
	}
	do(t, d, func() error {
		for _, a := range arguments {
			if err := f.Launch(Grid{X: 7, Y: 5, Z: 3}, Grid{X: 32, Z: 2}, a...); err != nil {
				return err
			}
		}
		return empty.Launch(Grid{}, Grid{})
	})
	for i, a := range arguments {
		if want := (FakeLaunch{"scale", [3]uint32{7, 5, 3}, [3]uint32{32, 1, 2}, 0, []string{"y", "x", "n", "by", "offset"}, a}); !reflect.DeepEqual(c.launches[i], want) {
			t.Errorf("launched %v, want %v", c.launches[i], want)
		}
	}
	if want := (FakeLaunch{"empty", [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 100, nil, nil}); !reflect.DeepEqual(c.launches[3], want) {
		t.Errorf("launched %v, want %v", c.launches[3], want)
	}
}

func TestLaunchNamesTheKernel(t *testing.T) {
	c := newCard(t)
	d := openFake(t, c)
	f, empty := kernel(t, d, "scale", 0), kernel(t, d, "empty", 0)
	for _, odd := range []any{"text", int64(1), uint64(1), nil, true} {
		if err := d.Do(func() error { return f.Launch(Grid{}, Grid{}, Address(0), odd) }); err == nil || !strings.HasPrefix(err.Error(), "kernel scale: argument 1 has the unsupported type ") {
			t.Errorf("%T: %v", odd, err)
		}
	}
	if err := d.Do(func() error { return f.Launch(Grid{}, Grid{}, Address(0), Address(0), math.MaxInt32+1) }); err == nil || err.Error() != "kernel scale: argument 2 is 2147483648, which needs more than the 32 bits of a kernel's int" {
		t.Error(err)
	}
	for _, threads := range []Grid{{X: 1025}, {X: 32, Y: 32, Z: 2}} {
		if err := d.Do(func() error { return empty.Launch(Grid{}, threads) }); err == nil || err.Error() != "kernel empty: cuLaunchKernel: PLANTED (1): PLANTED" {
			t.Errorf("%v: %v", threads, err)
		}
	}
	if len(c.launches) != 0 {
		t.Errorf("launched %v", c.launches)
	}
}

// Dynamic shared memory of more than 48 KiB must be asked for before a launch.
func TestSharedMemoryIsAskedFor(t *testing.T) {
	for _, shared := range []int{0, 48 << 10, 48<<10 + 1, mostShared} {
		c := newCard(t)
		c.fail["cuFuncSetAttribute"] = 1
		if shared <= 48<<10 {
			c.fail["cuFuncSetAttribute"] = 0
		}
		d := openFake(t, c)
		f := kernel(t, d, "empty", shared)
		do(t, d, func() error { return f.Launch(Grid{}, Grid{}) })
		if got := c.launches[0].Shared; got != uint32(shared) {
			t.Errorf("launched with %d bytes of shared memory, want %d", got, shared)
		}
	}
	d := openFake(t, newCard(t))
	_, err := compile(t, d, scale).Function("empty", mostShared+1)
	if err == nil || err.Error() != "scale.cu: kernel empty: no kernel for this size on Fake: a block needs 228 KiB of shared memory: cuFuncSetAttribute: PLANTED (1): PLANTED" {
		t.Error(err)
	}
}

func TestFunctionNamesAMissingKernel(t *testing.T) {
	d := openFake(t, newCard(t))
	m := compile(t, d, scale)
	_, err := m.Function("shrink", 0)
	if want := "scale.cu: kernel shrink: cuModuleGetFunction: PLANTED (500): PLANTED"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if _, err := m.Function("scale", 0); err == nil {
		t.Error("a closed module has kernels")
	}
}

func TestModuleIsFreed(t *testing.T) {
	c := newCard(t)
	d := openFake(t, c)
	before := c.kinds()
	m := compile(t, d, scale)
	if c.kinds()["module"] != 1 {
		t.Error("the module is not on the card")
	}
	if err := errors.Join(m.Close(), m.Close()); err != nil {
		t.Error(err)
	}
	sameKinds(t, c, before)
	c.fail["cuModuleLoadData"] = 0
	if _, err := d.Compile(t.Context(), "scale.cu", scale); err == nil || err.Error() != "scale.cu: cuModuleLoadData: PLANTED (200): PLANTED" {
		t.Error(err)
	}
	delete(c.fail, "cuModuleLoadData")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Compile(ctx, "scale.cu", scale); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	sameKinds(t, c, before)
	m = compile(t, d, scale)
	if err := errors.Join(d.Close(), m.Close(), m.Close()); err != nil {
		t.Errorf("after the device: %v", err)
	}
	if _, err := d.Compile(t.Context(), "scale.cu", scale); !errors.Is(err, errClosed) {
		t.Error(err)
	}
}

// Compile returns when ctx ends, although the compiler is still running. The compiler's memory is freed when it ends.
func TestCompileIsCancelled(t *testing.T) {
	c := newCard(t)
	d := openFake(t, c)
	before := c.kinds()
	ctx, cancel := context.WithCancel(t.Context())
	returned, destroyed := make(chan struct{}), make(chan struct{})
	c.nvrtc.compiling = func() {
		cancel()
		select {
		case <-returned:
		case <-time.After(10 * time.Second):
			t.Error("Compile waits for the compiler")
		}
	}
	c.nvrtc.destroyed = func() { close(destroyed) }
	if _, err := d.Compile(ctx, "scale.cu", scale); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(returned)
	<-destroyed
	sameKinds(t, c, before)
}

// Work that waits for the device's thread while the device is closed does not run: the context is gone.
func TestNothingRunsAfterClose(t *testing.T) {
	c := newCard(t)
	d := openFake(t, c)
	var ran atomic.Int32
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			_ = d.Do(func() error {
				if c.kinds()["context"] == 0 {
					ran.Add(1)
				}
				return nil
			})
		})
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	all.Wait()
	if n := ran.Load(); n > 0 {
		t.Errorf("%d functions ran on a closed device", n)
	}
}

// Data are uploaded, copied and downloaded; memory is aligned, counted and freed all at once.
func TestMemory(t *testing.T) {
	c := newCard(t)
	d := openFake(t, c)
	before := c.kinds()
	m := d.NewMemory()
	data := []byte("twelve bytes")
	got := make([]byte, 12)
	do(t, d, func() error {
		a, err := m.Alloc(12)
		if err != nil {
			return err
		}
		b, err := m.Alloc(16)
		if err != nil {
			return err
		}
		if m.Bytes() != 28 || a%256 != 0 || b%256 != 0 {
			t.Errorf("%d bytes at %#x and %#x", m.Bytes(), a, b)
		}
		return first(
			func() error { return d.Upload(a, data) },
			func() error { return d.CopyWithin(b.Plus(1), a, 12) },
			func() error { return d.Clear(b.Plus(4), 8) },
			func() error { return d.Download(got, b.Plus(1)) },
			func() error { return d.Download(nil, 0) },
			d.Synchronize,
		)
	})
	if want := "twe\x00\x00\x00\x00\x00\x00\x00\x00s"; string(got) != want {
		t.Errorf("%q came back, want %q", got, want)
	}
	c.fail["cuMemAlloc"] = 0
	err := d.Do(func() error { _, err := m.Alloc(1 << 20); return err })
	if !errors.Is(err, ErrOutOfMemory) || m.Bytes() != 28 {
		t.Errorf("%v, %d bytes", err, m.Bytes())
	}
	if err := errors.Join(d.Release(m.Free), d.Release(m.Free)); err != nil || m.Bytes() != 0 {
		t.Errorf("%v, %d bytes", err, m.Bytes())
	}
	sameKinds(t, c, before)
	if err := errors.Join(d.Close(), d.Release(m.Free)); err != nil {
		t.Error(err)
	}
	if err := d.Do(func() error { return nil }); !errors.Is(err, errClosed) {
		t.Error(err)
	}
}

// A source is compiled once for each set of macros.
func TestCompileOnce(t *testing.T) {
	c := newCard(t)
	compiled := 0
	c.nvrtc.compiling = func() { compiled++ }
	d := openFake(t, c)
	for i, defines := range [][]string{nil, nil, {"X=1"}, {"X=1"}} {
		m, err := d.Compile(t.Context(), "scale.cu", scale, defines...)
		if err != nil {
			t.Fatal(err)
		}
		if want := 1 + i/2; compiled != want {
			t.Errorf("after %d calls the source was compiled %d times, not %d", i+1, compiled, want)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}
