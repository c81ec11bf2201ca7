package cuda

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/cost/arith"
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
	for _, typ := range arith.Types() {
		for _, streaming := range []bool{false, true} {
			for _, s := range [][3]int{{1, 1, 1}, {1, 384, 256}, {16, 1000, 333}, {33, 65, 129}, {4097, 255, 511}, {128, 256, 4096}, {1000, 2000, 3000}} {
				p := gemm.Problem{M: s[0], N: s[1], K: s[2], Type: typ, Streaming: streaming}
				x, w := operands(p, 11)
				deviation, err := check(d, p, x, w)
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
	for _, typ := range arith.Types() {
		size := 8192
		if typ == arith.FP32 || typ == arith.FP16CUDA {
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
	p := gemm.Problem{M: 512, N: 1024, K: 768, Type: arith.BF16}
	b := batch(t, d, Options{Repeat: 3}, p)
	defer b.Close()
	if _, err := b.Check(context.Background()); err != nil {
		t.Fatal(err)
	}
	raw := func() []byte {
		bytes := make([]byte, b.layers[0].product.sizes().outputBytes(p.Type))
		if err := d.thread.do(func() error {
			return first(
				func() error { return d.download(bytes, b.layers[0].y) },
				func() error { return d.poison(b.layers[0].y, len(bytes)) },
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
	problems := []gemm.Problem{{M: 16, N: 4096, K: 1024, Type: arith.BF16}, {M: 16, N: 1024, K: 4096, Type: arith.BF16}}
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

// The stamps of a sequence are times of the card's clock. By that clock a batch of the same executions takes the same time. A run
// is faster just after the clock has risen, so the test compares the fastest of some runs.
func TestGPUStamps(t *testing.T) {
	d := openGPU(t)
	const n = 64
	for _, size := range []int{1024, 4096} {
		p := gemm.Problem{M: size, N: size, K: size, Type: arith.BF16}
		b, tr := batch(t, d, Options{Repeat: 1}, p), sequence(t, d, p)
		replayed, stamped := time.Hour, time.Hour
		for range 10 {
			if err := errors.Join(b.Start(n), b.Wait(context.Background())); err != nil {
				t.Fatal(err)
			}
			took, err := b.Elapsed()
			if err != nil {
				t.Fatal(err)
			}
			replayed = min(replayed, took)
			s := stamps(t, tr, Segment{0, n})
			for i := 1; i < len(s); i++ {
				if s[i].At <= s[i-1].At || s[i].Done <= s[i-1].Done {
					t.Errorf("%v after %v", s[i], s[i-1])
				}
			}
			if last := s[len(s)-1]; last.Done != n {
				t.Errorf("the last stamp is %v", last)
			}
			stamped = min(stamped, s[len(s)-1].At-s[0].At)
		}
		t.Logf("%v: %d replays take %v, stamped executions %v; a stamp for every %d, %d events, alone %v", p, n, replayed, stamped,
			tr.graphs[0].group, len(d.timeline.free), tr.graphs[0].once)
		if off := stamped.Seconds()/replayed.Seconds() - 1; size == 4096 && math.Abs(off) > 0.02 {
			t.Errorf("%v: the stamps are %.1f %% off", p, 100*off)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The card's clock and the host's agree, and a sequence does not disturb that.
func TestGPUReadClock(t *testing.T) {
	d := openGPU(t)
	tr := sequence(t, d, gemm.Problem{M: 1024, N: 1024, K: 1024, Type: arith.BF16})
	begun := time.Now()
	now := func() time.Duration { return time.Since(begun) }
	quickest := func() ClockReading {
		var best ClockReading
		for i := range 32 {
			r, err := d.ReadClock(now)
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 || r.After-r.Before < best.After-best.Before {
				best = r
			}
		}
		t.Logf("%+v, read in %v", best, best.After-best.Before)
		return best
	}
	a := quickest()
	s := stamps(t, tr, Segment{0, 5000})
	if first := s[0].At; first < a.Card || first > a.Card+time.Second {
		t.Errorf("the sequence began at %v, after a reading of %v", first, a.Card)
	}
	time.Sleep(time.Second)
	b := quickest()
	if last := s[len(s)-1].At; last > b.Card {
		t.Errorf("the sequence ended at %v, before a reading of %v", last, b.Card)
	}
	host, card := b.After-a.After, b.Card-a.Card
	t.Logf("%v by the host, %v by the card: %.1f ppm", host, card, 1e6*(card.Seconds()/host.Seconds()-1))
	if (host - card).Abs() > time.Millisecond {
		t.Errorf("%v by the host's clock were %v by the card's", host, card)
	}
}

// Traffic runs at the card's memory rates.
func TestGPUTraffic(t *testing.T) {
	d := openGPU(t)
	for _, traffic := range []Traffic{{Name: "through memory", Kind: Copy, Bytes: 1 << 30}, {Name: "in cache", Kind: Copy, Bytes: 8 << 20}, {Name: "fill", Kind: Fill, Bytes: 1 << 30}, {Name: "launch", Kind: Launch},
		{Name: "read memory", Kind: Read, Bytes: 256 << 20}, {Name: "read cache", Kind: Read, Bytes: 16 << 20, Rounds: 64},
		{Name: "few", Kind: Read, Bytes: 16 << 20, Blocks: 4}, {Name: "spin", Kind: Spin, Rounds: 50}, {Name: "rest", Kind: Rest, Time: 50 * time.Microsecond}} {
		m, err := d.NewMix(t.Context(), traffic.Name, nil, []Traffic{traffic}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		n := max(1, int(200*time.Millisecond/m.replay))
		if err := errors.Join(m.Start(n), m.Wait(context.Background())); err != nil {
			t.Fatal(err)
		}
		took, err := m.Elapsed()
		if err != nil {
			t.Fatal(err)
		}
		executions := float64(n * m.Passes())
		moved := m.work[0].(*transfer)
		rate := float64(moved.Rounds) * float64(moved.read()+moved.written()) * executions / took.Seconds()
		t.Logf("%-14s %8.3f TB/s, %v each, %d in a replay of %v", traffic.Name, rate/1e12, time.Duration(float64(took)/executions), m.Passes(), m.replay)
		if once := took.Seconds() / executions; traffic.Kind == Rest && math.Abs(once/traffic.Time.Seconds()-1) > 0.2 {
			t.Errorf("a rest of %v takes %.3g s", traffic.Time, once)
		}
		if traffic.Bytes >= 256<<20 && rate < 1e12 || traffic.Rounds == 64 && rate < 5e12 {
			t.Errorf("%s: %.3g bytes read and written per second", traffic.Name, rate)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A replayed copy leaves its source's bytes.
func TestGPUTrafficCopies(t *testing.T) {
	d := openGPU(t)
	const size = 1 << 20
	m, err := d.NewMix(t.Context(), "copy", products(gemm.Problem{M: 64, N: 64, K: 64, Type: arith.BF16}), []Traffic{{Name: "copy", Kind: Copy, Bytes: size}}, Options{Repeat: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	moved := m.work[1].(*transfer)
	if err := d.thread.do(func() error { return d.poison(moved.to, size) }); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.Start(1), m.Wait(context.Background())); err != nil {
		t.Fatal(err)
	}
	var bytes [2][size]byte
	for i, at := range []uint64{moved.from, moved.to} {
		if err := d.thread.do(func() error { return d.download(bytes[i][:], at) }); err != nil {
			t.Fatal(err)
		}
	}
	if bytes[0] != bytes[1] {
		t.Error("the copy is not its source")
	}
	if _, err := m.Check(t.Context()); err != nil {
		t.Error(err)
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
	p := gemm.Problem{M: 2048, N: 8192, K: 8192, Type: arith.BF16}
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
	b := batch(t, d, Options{}, gemm.Problem{M: 4096, N: 4096, K: 4096, Type: arith.BF16})
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
	p := gemm.Problem{M: 1, N: 4096, K: 4096, Type: arith.BF16}
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
