package cuda

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
)

func openFake(t *testing.T, c *card) *Device {
	t.Helper()
	d, err := open(c.api(), 0, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		c.leaks()
	})
	return d
}

// TestMultiplyDescribesTheProduct: the fake library sees only C's arguments and must compute the product, for every
// type, both roles, and shapes with and without padding.
func TestMultiplyDescribesTheProduct(t *testing.T) {
	d := openFake(t, newCard(t))
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 40)
		p := gemm.Problem{
			M: size.Draw(t, "M"), N: size.Draw(t, "N"), K: size.Draw(t, "K"),
			Type: rapid.SampledFrom(arith.Types()).Draw(t, "type"), Streaming: rapid.Bool().Draw(t, "streaming"),
		}
		x, w := operands(p, rapid.Uint64().Draw(t, "seed"))
		if _, err := check(d, p, x, w); err != nil {
			t.Error(err)
		}
	})
}

func TestTensorCoresAreKeptOut(t *testing.T) {
	d := openFake(t, newCard(t))
	for _, typ := range arith.Types() {
		p := gemm.Problem{M: 2, N: 3, K: 4, Type: typ}
		b := batch(t, d, Options{Repeat: 1}, p)
		k := b.Kernels()[0]
		if want := typ != arith.FP32 && typ != arith.FP16CUDA; k.TensorCores != want {
			t.Errorf("%v: tensor cores %v", typ, k.TensorCores)
		}
		if k.Algorithm != 10 || k.Stages != 16 || k.Cluster != 18 || k.M != shapeOf(p).m {
			t.Errorf("%v: %+v", typ, k)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestCapabilityIsChecked(t *testing.T) {
	c := newCard(t)
	c.capability = 80
	d := openFake(t, c)
	p := gemm.Problem{M: 2, N: 3, K: 4, Type: arith.FP8}
	x, w := operands(p, 1)
	_, err := d.Multiply(p, x, w)
	if err == nil || !strings.Contains(err.Error(), "Fake (compute capability 8.0) cannot multiply fp8, which needs 8.9 or later") {
		t.Error(err)
	}
}

// batch makes a batch of these problems.
func batch(t *testing.T, d *Device, o Options, problems ...gemm.Problem) *Batch {
	t.Helper()
	b, err := d.NewBatch(t.Context(), "test", products(problems...), o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func products(problems ...gemm.Problem) (products []Product) {
	for i, p := range problems {
		x, w := operands(p, uint64(i))
		products = append(products, Product{fmt.Sprint("layer ", i), p, x, w})
	}
	return products
}

var small = []gemm.Problem{{M: 4, N: 6, K: 8, Type: arith.BF16}, {M: 4, N: 5, K: 6, Type: arith.BF16, Streaming: true}}

func TestBatchReplays(t *testing.T) {
	c := newCard(t)
	c.product = 100 * time.Microsecond
	d := openFake(t, c)
	b := batch(t, d, Options{Repeat: 5}, small...)
	defer b.Close()
	if found, err := b.Check(context.Background()); err != nil || len(found) != 2 || !found[1].AllOfIt {
		t.Fatal(found, err)
	}
	if b.Passes() != 5 || b.Copies() != 1 || b.replay != 10*c.product {
		t.Errorf("%d passes, %d copies, %v a replay", b.Passes(), b.Copies(), b.replay)
	}
	for _, n := range []int{1, 24, 25, 26, 200} { // a chunk is 25 replays
		before := c.launched
		if err := b.Start(n); err != nil {
			t.Fatal(err)
		}
		if err := b.Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got := c.launched - before; got != n*10 {
			t.Errorf("%d replays launched %d products, want %d", n, got, n*10)
		}
		took, err := b.Elapsed()
		want := time.Duration(n) * 10 * c.product
		if err != nil || (took-want).Abs() > time.Microsecond {
			t.Errorf("%d replays took %v, %v; want %v: was the card left idle?", n, took, err, want)
		}
	}
}

func TestOneBatchAtATime(t *testing.T) {
	c := newCard(t)
	c.product = 50 * time.Millisecond
	d := openFake(t, c)
	a, b := batch(t, d, Options{Repeat: 1}, small...), batch(t, d, Options{Repeat: 1}, small...)
	defer a.Close()
	defer b.Close()
	if err := a.Start(3); err != nil {
		t.Fatal(err)
	}
	if err := b.Start(1); err == nil || !strings.Contains(err.Error(), "call Wait for it first") {
		t.Error(err)
	}
	if err := a.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Start(1), b.Wait(context.Background())); err != nil {
		t.Error(err)
	}
}

func TestCancelledWaitStopsTheCard(t *testing.T) {
	c := newCard(t)
	c.product = time.Millisecond
	d := openFake(t, c)
	b := batch(t, d, Options{Repeat: 1}, small...)
	if err := b.Start(1_000_000); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := b.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	<-b.run.done
	begun := c.now
	if _, err := b.Elapsed(); err == nil {
		t.Error("a cancelled run has a duration")
	}
	if err := errors.Join(b.Start(1), b.Wait(context.Background()), b.Close()); err != nil {
		t.Error(err)
	}
	if took := c.now - begun; took > 50*time.Millisecond {
		t.Errorf("a replay of 2 ms took %v: what had been cancelled ran on", took)
	}
}

func TestCloseEndsARunningBatch(t *testing.T) {
	c := newCard(t)
	c.product = time.Millisecond
	d, err := open(c.api(), 0, false)
	if err != nil {
		t.Fatal(err)
	}
	b := batch(t, d, Options{Repeat: 1}, small...)
	if err := errors.Join(b.Start(1_000_000), b.Close()); err != nil {
		t.Error(err)
	}
	if c.busyUntil > c.now {
		t.Errorf("the card is busy for another %v", c.busyUntil-c.now)
	}
	b = batch(t, d, Options{Repeat: 1}, small...)
	if err := errors.Join(b.Start(1_000_000), d.Close(), d.Close(), b.Close(), b.Close()); err != nil {
		t.Error(err)
	}
	if err := b.Start(1); !errors.Is(err, errClosed) {
		t.Error(err)
	}
	c.leaks()
}

func TestColdCopiesExceedL2(t *testing.T) {
	d := openFake(t, newCard(t)) // with 4096 bytes of L2
	b := batch(t, d, Options{Cold: true, Repeat: 2}, small...)
	defer b.Close()
	one := int64(6*8*2 + 5*6*2)
	if b.WeightBytes() <= 4*4096 || b.WeightBytes()-one > 4*4096 || b.Passes() != 2*b.Copies() {
		t.Errorf("%d copies of %d bytes, %d passes", b.Copies(), one, b.Passes())
	}
	if _, err := b.Check(context.Background()); err != nil {
		t.Error(err)
	}
	for _, l := range b.layers {
		distinct := map[uint64]bool{}
		for _, w := range l.w {
			distinct[w] = true
		}
		if len(distinct) != b.Copies() {
			t.Errorf("%s has %d copies", l.Name, len(distinct))
		}
	}
	// With ColdBytes, larger weights get as many copies as smaller ones.
	for _, bytes := range []int{int(10 * one), int(one), int(one) / 4} {
		copies := 4*4096/min(bytes, int(one)) + 1
		other := batch(t, d, Options{Cold: true, Repeat: 1, ColdBytes: bytes}, small...)
		if other.Copies() != copies {
			t.Errorf("%d copies for %d bytes, want %d", other.Copies(), bytes, copies)
		}
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestStackedWeights: copies lie one below the other with any padding, and each gives the product's result.
func TestStackedWeights(t *testing.T) {
	c := newCard(t)
	d := openFake(t, c)
	for _, typ := range arith.Types() {
		for _, streaming := range []bool{false, true} {
			p := gemm.Problem{M: 3, N: 5, K: 7, Type: typ, Streaming: streaming}
			b := batch(t, d, Options{Stack: 7, Repeat: 1}, p, p)
			found, err := b.Check(t.Context())
			if err != nil || !found[0].AllOfIt || found[1].Compared != 0 {
				t.Errorf("%v: %v, %v", p, found, err)
			}
			if b.Ops() != 2*7*p.Ops() {
				t.Errorf("%v: %v operations", p, b.Ops())
			}
			l := b.layers[0]
			raw, err := d.compute(l.product, l.problem, l.x, l.w[0], l.y)
			if err != nil {
				t.Fatal(err)
			}
			y := l.product.sizes().result(l.problem, raw)
			for i := range y {
				if first := i/l.problem.N*l.problem.N + i%p.N; y[i] != y[first] {
					t.Fatalf("%v: output %d is %v, and %v in the first copy", p, i, y[i], y[first])
				}
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestReplaysTakeFiveMilliseconds on cards of any speed, also if the clock has yet to rise, unless that takes too many
// launches.
func TestReplaysTakeFiveMilliseconds(t *testing.T) {
	for _, test := range []struct {
		product, transfer time.Duration
		cold              bool
		passes            int // of two products and a transfer
	}{
		{product: 6 * time.Millisecond, passes: 1},
		{product: time.Millisecond, transfer: time.Millisecond, passes: 2},
		{product: 100 * time.Microsecond, transfer: 500 * time.Microsecond, passes: 8},
		{product: 10 * time.Microsecond, passes: 256},
		{product: 10 * time.Nanosecond, passes: 1024},
		{product: 10 * time.Microsecond, cold: true, passes: 432}, // of 27 copies
	} {
		c := newCard(t)
		c.product, c.transfer, c.slow = test.product, test.transfer, 4*time.Millisecond
		o := Options{Cold: test.cold}
		if test.cold {
			o.Stack = 4
		}
		m, err := openFake(t, c).NewMix(t.Context(), "mix", products(small...), []Traffic{{Name: "launch", Kind: Launch}}, o)
		if err != nil {
			t.Fatal(err)
		}
		if m.Passes() != test.passes || m.Passes()%m.Copies() != 0 || 3*m.Passes() > maxLaunches {
			t.Errorf("%v and %v: %d passes of %d copies take %v, want %d", test.product, test.transfer, m.Passes(), m.Copies(), m.replay, test.passes)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestInputsThatAreNotFiniteAreNamed(t *testing.T) {
	d := openFake(t, newCard(t))
	ps := products(small...)
	ps[1].W.Data[3] = 0x7F
	ps[1].W.Data[2] = 0x80
	_, err := d.NewBatch(t.Context(), "b", ps, Options{})
	if !errors.Is(err, gemm.ErrNotFinite) || !strings.Contains(err.Error(), "batch b: layer 1: w is not finite: 0 NaN and 1 infinite values, the first at row 0, column 1") {
		t.Error(err)
	}
}

func TestMemoryIsGivenBackBeforeClosingTheDevice(t *testing.T) {
	c := newCard(t)
	d := openFake(t, c)
	before := len(c.alive)
	b := batch(t, d, Options{Cold: true}, small...)
	if err := errors.Join(b.Start(1), b.Wait(context.Background()), b.Close()); err != nil {
		t.Error(err)
	}
	x, w := operands(small[0], 1)
	if _, err := d.Multiply(small[0], x, w); err != nil {
		t.Error(err)
	}
	if after := len(c.alive); after != before {
		t.Errorf("%d things on the card, %d before", after, before)
	}
}

// Whichever call fails, at any time, everything is freed and the error names the call.
func TestEverythingIsGivenBackAfterFailures(t *testing.T) {
	for _, call := range []string{"cuCtxCreate", "cuStreamCreate", "cublasLtCreate", "cuMemAlloc", "cuEventCreate", "cublasLtMatmulDescCreate",
		"cublasLtLayoutCreate", "cuGraphInstantiate", "cuGraphLaunch", "cublasLtMatmul", "cuEventQuery"} {
		for after := range 12 {
			c := newCard(t)
			c.fail[call] = after
			err := useOnce(c)
			if err == nil {
				if after == 0 {
					t.Errorf("%s failed and nobody noticed", call)
				}
				break
			}
			if !strings.Contains(err.Error(), "PLANTED") && !strings.Contains(err.Error(), "status ") {
				t.Errorf("%s: %v", call, err)
			}
			if call == "cuMemAlloc" && (!errors.Is(err, ErrOutOfMemory) || !strings.Contains(err.Error(), "MiB are free")) {
				t.Errorf("%s: %v", call, err)
			}
			c.leaks()
		}
	}
}

// useOnce opens, replays, multiplies and closes.
func useOnce(c *card) (err error) {
	d, err := open(c.api(), 0, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	b, err := d.NewBatch(context.Background(), "b", products(small...), Options{Repeat: 2})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := b.Start(3); err != nil {
		return err
	}
	if err := b.Wait(context.Background()); err != nil {
		return err
	}
	x, w := operands(small[0], 1)
	_, err = d.Multiply(small[0], x, w)
	return err
}
