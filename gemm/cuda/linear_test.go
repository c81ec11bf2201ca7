package cuda

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/weights"
)

// stored is the type of an element in files.
var stored = map[Element]weights.DType{BF16: weights.BF16, FP16: weights.F16, FP32: weights.F32}

// grid is a matrix of small whole numbers on the host. The rest of its memory is NaN.
type grid struct {
	element            Element
	rows, cols, stride int
	data               []byte
}

func newGrid(e Element, rows, cols, gap int) grid {
	g := grid{e, rows, cols, cols + gap, nil}
	g.data = bytes.Repeat([]byte{0xFF}, (rows*g.stride+1)*e.Bytes())
	return g
}

func (g grid) at(row, col int) float32 {
	f, _ := stored[g.element].Format()
	return f.Value(f.Elem(g.data, row*g.stride+col))
}

func (g grid) set(row, col int, v float32) {
	f, _ := stored[g.element].Format()
	f.SetElem(g.data, row*g.stride+col, f.FromValue(v))
}

// fill draws the numbers.
func (g grid) fill(t *rapid.T, name string) grid {
	values := rapid.SliceOfN(rapid.IntRange(-3, 3), g.rows*g.cols, g.rows*g.cols).Draw(t, name)
	for i, v := range values {
		g.set(i/g.cols, i%g.cols, float32(v))
	}
	return g
}

// upload puts matrices on the card, each behind bytes more than a multiple of 256.
func (m *Memory) upload(behind int, matrices ...grid) (at []Address, err error) {
	for _, g := range matrices {
		one, err := m.Alloc(behind + len(g.data))
		if err != nil {
			return nil, err
		}
		at = append(at, one.Plus(behind))
		if err := m.device.Upload(at[len(at)-1], g.data); err != nil {
			return nil, err
		}
	}
	return at, nil
}

// TestLinear: every shape, element, stride and alignment, w in both layouts, with and without what was in y. Only the product's
// elements of y are written, and y is read only if add is set.
func TestLinear(t *testing.T) {
	d := openFake(t, newCard(t))
	rapid.Check(t, func(t *rapid.T) {
		size, gap := rapid.IntRange(1, 12), rapid.IntRange(0, 3)
		types := rapid.SampledFrom([][2]Element{{BF16, BF16}, {BF16, FP32}, {FP16, FP16}, {FP16, FP32}, {FP32, FP32}}).Draw(t, "types")
		s := LinearShape{
			M: size.Draw(t, "M"), N: size.Draw(t, "N"), K: size.Draw(t, "K"), In: types[0], Out: types[1],
			Transposed: rapid.Bool().Draw(t, "transposed"), TransposedX: rapid.Bool().Draw(t, "x transposed"), Aligned: rapid.SampledFrom([]int{4, 8, 16, 32, 128, 256}).Draw(t, "aligned"),
		}
		add := rapid.Bool().Draw(t, "add")
		x, y := newGrid(s.In, s.M, s.K, gap.Draw(t, "gap of x")), newGrid(s.Out, s.M, s.N, gap.Draw(t, "gap of y"))
		between := gap.Draw(t, "gap of w")
		w := newGrid(s.In, s.N, s.K, between)
		if s.Transposed {
			w = newGrid(s.In, s.K, s.N, between)
		}
		if between > 0 {
			s.StrideW = w.stride
		}
		w.fill(t, "w")
		xAt := x.at
		if s.TransposedX {
			x = newGrid(s.In, s.K, s.M, x.stride-s.K)
			xAt = func(row, col int) float32 { return x.at(col, row) }
		}
		x.fill(t, "x")
		if add {
			y.fill(t, "y")
		}
		s.StrideX, s.StrideY = x.stride, y.stride
		got := make([]byte, len(y.data))
		memory := d.NewMemory()
		if err := d.Do(func() error {
			at, err := memory.upload(s.Aligned, x, w, y)
			if err != nil {
				return err
			}
			l, err := d.NewLinear(s)
			if err != nil {
				return err
			}
			defer l.Close()
			return errors.Join(l.Launch(at[2], at[0], at[1], add), d.Download(got, at[2]), memory.Free())
		}); err != nil {
			t.Fatal(err)
		}
		for i := range s.M {
			for j := range s.N {
				var sum float32
				if add {
					sum = y.at(i, j)
				}
				for k := range s.K {
					if s.Transposed {
						sum += xAt(i, k) * w.at(k, j)
					} else {
						sum += xAt(i, k) * w.at(j, k)
					}
				}
				y.set(i, j, sum)
			}
		}
		if !bytes.Equal(got, y.data) {
			t.Errorf("y is %x, want %x", got, y.data)
		}
	})
}

// square returns a shape of matrices without gaps.
func square(n int, e Element) LinearShape {
	return LinearShape{M: n, N: n, K: n, In: e, Out: e, StrideX: n, StrideY: n, Aligned: 256}
}

// newLinear describes a product, and allocates three matrices of its size.
func newLinear(t *testing.T, d *Device, s LinearShape) (l *Linear, y, x, w Address) {
	t.Helper()
	do(t, d, func() (err error) { l, err = d.NewLinear(s); return err })
	t.Cleanup(l.Close)
	bytes := 4 * s.M * s.N
	return l, alloc(t, d, bytes), alloc(t, d, bytes), alloc(t, d, bytes)
}

// cuBLASLt must get the alignment of addresses that are not multiples of 256, because its kernels depend on it.
func TestLinearSaysHowAddressesAreAligned(t *testing.T) {
	d := openFake(t, newCard(t))
	for _, aligned := range []int{2, 16, 256} {
		s := square(4, BF16)
		s.Aligned = aligned
		l, y, x, w := newLinear(t, d, s)
		for i := range 3 {
			at := []Address{y, x, w}
			at[i] = at[i].Plus(16)
			err := d.Do(func() error { return l.Launch(at[0], at[1], at[2], true) })
			if aligned <= 16 && err != nil || aligned > 16 && (err == nil || err.Error() != "cublasLtMatmul: status 7 (7)") {
				t.Errorf("aligned to %d, matrix %d at %#x: %v", aligned, i, at[i], err)
			}
		}
	}
}

// The fake offers a kernel on tensor cores first.
func TestLinearOfFloat32UsesNoTensorCores(t *testing.T) {
	d := openFake(t, newCard(t))
	for _, e := range []Element{BF16, FP16, FP32} {
		l, _, _, _ := newLinear(t, d, square(4, e))
		if cores := d.api.implementation(&l.kernels[0])&implTensorOps != 0; cores != (e != FP32) {
			t.Errorf("%v on tensor cores: %v", e, cores)
		}
	}
}

func TestElements(t *testing.T) {
	for e, want := range map[Element]struct {
		name  string
		bytes int
	}{BF16: {"BF16", 2}, FP16: {"FP16", 2}, FP32: {"FP32", 4}} {
		if e.String() != want.name || e.Bytes() != want.bytes || formats[e.code()].Bits != 8*want.bytes {
			t.Errorf("%v has %d bytes and code %d", e, e.Bytes(), e.code())
		}
	}
}

func TestNewLinearRefuses(t *testing.T) {
	c := newCard(t)
	d := openFake(t, c)
	before := c.kinds()
	for _, s := range []LinearShape{{N: 3, K: 4}, {M: 2, K: 4}, {M: 2, N: 3}} {
		if err := d.Do(func() error { _, err := d.NewLinear(s); return err }); !errors.Is(err, errNoShape) || !strings.HasPrefix(err.Error(), "product of ") {
			t.Error(err)
		}
	}
	c.offers = []fakeOffer{{flags: 0x202}}
	err := d.Do(func() error { _, err := d.NewLinear(square(5, FP32)); return err })
	if want := "product of 5×5×5 in FP32 on Fake with cuBLASLt 12.6.5: none of the 1 kernels that cuBLASLt offers has an allowed numerical implementation"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	c.offers = nil
	for _, call := range []string{"cublasLtMatmulDescCreate", "cublasLtMatmulDescSet", "cublasLtLayoutCreate", "cublasLtPreferenceCreate", "cublasLtPreferenceSet", "cublasLtGetHeuristic"} {
		for failed := 0; ; failed++ {
			c.fail[call] = failed
			var l *Linear
			err := d.Do(func() (err error) { l, err = d.NewLinear(square(5, BF16)); return err })
			if err == nil {
				l.Close()
				l.Close()
			} else if !strings.HasPrefix(err.Error(), "product of 5×5×5 in BF16 on Fake with cuBLASLt 12.6.5: cublasLt") {
				t.Errorf("%s: %v", call, err)
			}
			sameKinds(t, c, before)
			if err == nil {
				if failed == 0 {
					t.Errorf("%s failed and nobody noticed", call)
				}
				break
			}
		}
		delete(c.fail, call)
	}
}

// TestTune: of the kernels that run, the fastest is kept, and timed once.
func TestTune(t *testing.T) {
	fast, slow := fakeOffer{takes: 3 * time.Millisecond}, fakeOffer{takes: 5 * time.Millisecond}
	refuses := fakeOffer{takes: time.Millisecond, refuses: true}
	for _, offers := range [][]fakeOffer{
		{fast, slow}, {slow, fast}, {slow, refuses, fast, slow}, {refuses, fast}, {refuses, slow, fast, refuses}, {fast}, {refuses, refuses},
	} {
		c := newCard(t)
		c.offers = offers
		d := openFake(t, c)
		l, y, x, w := newLinear(t, d, square(4, BF16))
		events := c.kinds()["event"]
		do(t, d, func() error { return l.Tune(y, x, w) })
		if more := c.kinds()["event"] - events; more > 2 {
			t.Errorf("%v: %d events are left", offers, more)
		}
		launched := c.launched
		do(t, d, func() error { return errors.Join(l.Tune(y, x, w), d.Synchronize()) })
		if c.launched != launched {
			t.Errorf("%v: tuned again", offers)
		}
		before := c.busyUntil
		err := d.Do(func() error { return l.Launch(y, x, w, false) })
		if !slices.Contains(offers, fast) {
			if err == nil || err.Error() != "cublasLtMatmul: status 13 (13)" {
				t.Errorf("no kernel runs: %v", err)
			}
			continue
		}
		if took := c.busyUntil - max(before, c.now); err != nil || took != fast.takes {
			t.Errorf("%v: the kept kernel takes %v, %v", offers, took, err)
		}
	}
}

// An error of the card ends the timing. The product can still be launched, and is not timed again.
func TestTuneFails(t *testing.T) {
	for call, calls := range map[string]int{"cuEventRecord": 4, "cuEventCreate": 2, "cublasLtMatmul": 10, "cuCtxSynchronize": 2, "cuEventElapsedTime": 2} {
		failures := 0
		for after := range calls {
			c := newCard(t)
			d := openFake(t, c)
			l, y, x, w := newLinear(t, d, square(4, BF16))
			c.fail[call] = after
			err := d.Do(func() error { return l.Tune(y, x, w) })
			delete(c.fail, call)
			if err != nil {
				failures++
				if !strings.Contains(err.Error(), "PLANTED") && !strings.Contains(err.Error(), "status ") {
					t.Errorf("%s: %v", call, err)
				}
			}
			launched := c.launched
			do(t, d, func() error { return errors.Join(l.Tune(y, x, w), l.Launch(y, x, w, false)) })
			if c.launched != launched+1 {
				t.Errorf("%s: tuned again", call)
			}
		}
		if failures == 0 {
			t.Errorf("%s failed and nobody noticed", call)
		}
	}
}
