package cuda

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights"
)

// The tests of this file run on a real card and skip where there is none. Without Go there: build
// the test binary with CGO_ENABLED=0 go test -c, and run it with -test.v -test.run GPU.

func openGPU(t *testing.T) *Device {
	t.Helper()
	d, err := Open(0)
	if errors.Is(err, ErrNoGPU) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestGPUInfo(t *testing.T) {
	info := openGPU(t).Info()
	t.Logf("%+v", info)
	if info.Memory == 0 || info.SMs == 0 || info.L2 == 0 || info.PCIBusID == "" || info.Name == "" || info.capability < 50 {
		t.Error("the card did not say all of it")
	}
}

func TestGPUProducts(t *testing.T) {
	d := openGPU(t)
	failed := 0
	for _, typ := range gemm.Types() {
		for _, streaming := range []bool{false, true} {
			for _, s := range [][3]int{{1, 1, 1}, {1, 384, 256}, {16, 1000, 333}, {33, 65, 129}, {4097, 255, 511}, {128, 256, 4096}, {1000, 2000, 3000}} {
				p := gemm.Problem{M: s[0], N: s[1], K: s[2], Type: typ, Streaming: streaming}
				x, w := operands(p, 11)
				deviation, err := gemm.Check(d, p, x, w)
				verdict := "pass"
				if err != nil {
					failed, verdict = failed+1, "FAIL "+err.Error()
				}
				t.Logf("%-40v relative %8.2e, worst %5.2f of its tolerance: %s", p, deviation.Relative, deviation.Worst, verdict)
			}
		}
	}
	if failed > 0 {
		t.Errorf("%d products failed", failed)
	}
}

// rate replays p for about half a second and gives operations per second.
func rate(t *testing.T, d *Device, p gemm.Problem) float64 {
	t.Helper()
	b := batch(t, d, Options{}, p)
	defer b.Close()
	n := max(1, int(500*time.Millisecond/b.replay))
	if err := errors.Join(b.Start(n), b.Wait(context.Background())); err != nil {
		t.Fatal(err)
	}
	took, err := b.Elapsed()
	if err != nil {
		t.Fatal(err)
	}
	speed := b.Ops() * float64(n) / took.Seconds()
	t.Logf("%-40v %7.1f Top/s, %8.3f ms each; %v; accumulates in half: %v, compute type %d", p, speed/1e12,
		took.Seconds()*1e3/float64(n*b.Passes()), b.Kernels()[0], b.Kernels()[0].Half, b.Kernels()[0].Compute)
	return speed
}

func TestGPURates(t *testing.T) {
	d := openGPU(t)
	for _, typ := range gemm.Types() {
		size := 8192
		if typ == gemm.FP32 || typ == gemm.FP16CUDA {
			size = 4096
		}
		var found [2]float64
		for i, streaming := range []bool{false, true} {
			found[i] = rate(t, d, gemm.Problem{M: size, N: size, K: size, Type: typ, Streaming: streaming})
		}
		if found[0] < 1e12 || found[1] < 1e12 {
			t.Errorf("%v: %.3g and %.3g operations per second", typ, found[0], found[1])
		}
	}
}

// A replayed graph leaves the bytes that direct launches leave.
func TestGPUGraphEqualsDirect(t *testing.T) {
	d := openGPU(t)
	p := gemm.Problem{M: 512, N: 1024, K: 768, Type: gemm.BF16}
	b := batch(t, d, Options{Repeat: 3}, p)
	defer b.Close()
	if _, err := b.Check(context.Background()); err != nil {
		t.Fatal(err)
	}
	raw := func() []byte {
		bytes := make([]byte, b.layers[0].matmul.shape.outputBytes(p.Type))
		if err := d.thread.do(func() error {
			return first(
				func() error { return d.download(bytes, b.y) },
				func() error { return d.poison(b.y, len(bytes)) },
			)
		}); err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	direct := raw()
	if err := errors.Join(b.Start(2), b.Wait(context.Background())); err != nil {
		t.Fatal(err)
	}
	if string(raw()) != string(direct) {
		t.Error("the graph's result differs")
	}
}

// Decode: weights that cycle through more than the L2 are read from memory, so that time follows
// their bytes.
func TestGPUColdWeights(t *testing.T) {
	d := openGPU(t)
	problems := []gemm.Problem{{M: 16, N: 4096, K: 1024, Type: gemm.BF16}, {M: 16, N: 1024, K: 4096, Type: gemm.BF16}}
	var took [2]time.Duration
	for i, cold := range []bool{false, true} {
		b := batch(t, d, Options{Cold: cold}, problems...)
		n := max(1, int(200*time.Millisecond/b.replay))
		if err := errors.Join(b.Start(n), b.Wait(context.Background())); err != nil {
			t.Fatal(err)
		}
		total, err := b.Elapsed()
		if err != nil {
			t.Fatal(err)
		}
		took[i] = total / time.Duration(n*b.Passes())
		if _, err := b.Check(context.Background()); err != nil {
			t.Error(err)
		}
		t.Logf("cold %v: %d copies, %d MiB of weights, %v a pass", cold, b.Copies(), b.WeightBytes()>>20, took[i])
		if cold && b.WeightBytes() <= 4*d.Info().L2 {
			t.Error("the weights fit four L2 caches")
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	if took[1] < took[0] {
		t.Errorf("cold weights were faster: %v, cached %v", took[1], took[0])
	}
}

func TestGPUMemoryReturns(t *testing.T) {
	free := func(d *Device) int64 {
		n, err := d.FreeMemory()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	p := gemm.Problem{M: 2048, N: 8192, K: 8192, Type: gemm.BF16}
	once := func() int64 {
		d := openGPU(t)
		before := free(d)
		b := batch(t, d, Options{Repeat: 2}, p)
		during := free(d)
		if err := errors.Join(b.Start(2), b.Wait(context.Background()), b.Close()); err != nil {
			t.Fatal(err)
		}
		after := free(d)
		if used, kept := before-during, before-after; used < 1<<27 || kept > used/2 {
			t.Errorf("a batch used %d MiB and kept %d", used>>20, kept>>20)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		return before
	}
	first := once()
	for range 2 {
		if lost := first - once(); lost > 32<<20 {
			t.Errorf("%d MiB less after closing the device", lost>>20)
		}
	}
}

func TestGPUCancel(t *testing.T) {
	d := openGPU(t)
	b := batch(t, d, Options{}, gemm.Problem{M: 4096, N: 4096, K: 4096, Type: gemm.BF16})
	if err := b.Start(1_000_000); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(300*time.Millisecond, cancel)
	<-ctx.Done()
	begun := time.Now()
	if err := b.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	waited := time.Since(begun)
	if err := errors.Join(b.Close(), d.Close()); err != nil {
		t.Error(err)
	}
	t.Logf("the wait ended after %v, the card was closed after %v", waited, time.Since(begun))
	if time.Since(begun) > time.Second {
		t.Error("it took longer than a second")
	}
}

func TestGPUOutOfMemory(t *testing.T) {
	d := openGPU(t)
	p := gemm.Problem{M: 1, N: 4096, K: 4096, Type: gemm.BF16}
	w := gemm.NewMatrix(weights.BF16, p.N, p.K)
	x := gemm.NewMatrix(weights.BF16, p.M, p.K)
	before, err := d.FreeMemory()
	if err != nil {
		t.Fatal(err)
	}
	err = d.thread.do(func() error {
		memory := &arena{device: d}
		defer memory.free()
		for {
			if _, err := memory.alloc(1 << 30); err != nil {
				return err
			}
		}
	})
	t.Log(err)
	if !errors.Is(err, ErrOutOfMemory) {
		t.Fatal(err)
	}
	if _, err := d.Multiply(p, x, w); err != nil {
		t.Errorf("the card does not go on after it ran out of memory: %v", err)
	}
	if after, _ := d.FreeMemory(); before-after > 256<<20 {
		t.Errorf("%d MiB lost", (before-after)>>20)
	}
}
