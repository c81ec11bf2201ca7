package verify

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"pgregory.net/rapid"
)

// planted is a matrix and an image of it: rows and columns permuted, negated and scaled by powers of two.
type planted struct {
	pair
	im image
}

// plant draws normal values, so that nothing overflows, and a random image.
func plant(t *rapid.T, d weights.DType) *planted {
	f, _ := d.Format()
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	p := &planted{}
	p.rows, p.cols, p.f = rapid.IntRange(20, 60).Draw(t, "rows"), rapid.IntRange(20, 60).Draw(t, "cols"), f
	tensor := func() weights.Tensor {
		n := p.rows * p.cols * f.Bits / 8
		return weights.Tensor{Info: weights.Info{Name: "w", DType: d, Shape: []int{p.rows, p.cols}, End: int64(n)}, Data: make([]byte, n)}
	}
	p.a, p.b = tensor(), tensor()
	spread := 0
	if rapid.Bool().Draw(t, "scaled") {
		spread = 1
	}
	for i := range p.rows * p.cols {
		v := rng.NormFloat64() / 2
		if least := math.Ldexp(1, 3-f.Bias); math.Abs(v) < least { // stays normal
			v = math.Copysign(least, v)
		}
		f.SetElem(p.a.Data, i, f.FromValue(float32(v)))
	}
	p.im = image{row: rng.Perm(p.rows), col: rng.Perm(p.cols), rowFlip: make([]bool, p.rows), colFlip: make([]bool, p.cols),
		rowExp: make([]int, p.rows), colExp: make([]int, p.cols)}
	for i := range p.rows {
		p.im.rowFlip[i], p.im.rowExp[i] = rng.IntN(2) == 0, rng.IntN(2*spread+1)-spread
	}
	for i := range p.cols {
		p.im.colFlip[i], p.im.colExp[i] = rng.IntN(2) == 0, rng.IntN(2*spread+1)-spread
	}
	for n := range p.rows {
		for k := range p.cols {
			v := p.value(p.a, p.im.row[n], p.im.col[k])
			if p.im.rowFlip[n] != p.im.colFlip[k] {
				v = -v
			}
			f.SetElem(p.b.Data, n*p.cols+k, f.FromValue(float32(math.Ldexp(v, p.im.rowExp[n]+p.im.colExp[k]))))
		}
	}
	return p
}

var floats = []weights.DType{weights.BF16, weights.F16, weights.F32, weights.F8E4M3, weights.F8E5M2}

// TestFindRecoversImages: the planted image is found. If rows of an 8-bit matrix are equal, any of them is correct as
// long as every element agrees.
func TestFindRecoversImages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plant(t, rapid.SampledFrom(floats).Draw(t, "type"))
		if d, err := p.compare(t.Context(), &p.im, nil, 0, nil); err != nil || d.changed != 0 {
			t.Fatalf("the planted image leaves %d values changed (%v)", d.changed, err)
		}
		im, found, err := p.find(t.Context())
		if err != nil || !found {
			t.Fatalf("no image found (%v)", err)
		}
		if d, _ := p.compare(t.Context(), &im, nil, 0, nil); d.changed != 0 {
			t.Fatalf("%d of %d values differ from the image found", d.changed, p.rows*p.cols)
		}
	})
}

func TestFindRecoversImagesAfterRounding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plant(t, rapid.SampledFrom([]weights.DType{weights.BF16, weights.F16, weights.F32}).Draw(t, "type"))
		q := quantiser{rapid.IntRange(1, p.f.MantBits-4).Draw(t, "bits"), rapid.Bool().Draw(t, "truncate")}
		for i := range p.rows * p.cols {
			b := p.f.Elem(p.b.Data, i)
			unit := uint32(1) << q.bits
			if !q.truncate {
				b += unit/2 - 1 + b>>q.bits&1
			}
			p.f.SetElem(p.b.Data, i, b&^(unit-1))
		}
		want, _ := p.compare(t.Context(), &p.im, nil, 0, nil)
		im, found, err := p.find(t.Context())
		if err != nil || !found {
			t.Fatalf("no image found (%v)", err)
		}
		if got, _ := p.compare(t.Context(), &im, nil, 0, nil); got.noise > want.noise*(1+1e-9) {
			t.Fatalf("the image found leaves noise of %g, the planted one %g", got.noise, want.noise)
		}
	})
}

func TestFindDoesNotInventImages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, other := plant(t, weights.BF16), plant(t, weights.BF16)
		if len(p.a.Data) != len(other.b.Data) {
			p.b = weights.Tensor{Info: p.a.Info, Data: make([]byte, len(p.a.Data))}
			for i := range p.b.Data {
				p.b.Data[i] = other.b.Data[i%len(other.b.Data)]
			}
		} else {
			p.b.Data = other.b.Data
		}
		im, found, err := p.find(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if d, _ := p.compare(t.Context(), &im, nil, 0, nil); found && d.noise < d.signal/100 {
			t.Fatalf("unrelated matrices became an image with noise %g of %g", d.noise, d.signal)
		}
	})
}

func TestFindOfPlainMatrices(t *testing.T) {
	f, _ := weights.BF16.Format()
	for name, value := range map[string]func(i int) float32{
		"zeros": func(int) float32 { return 0 },
		"ones":  func(int) float32 { return 1 },
		"NaN":   func(int) float32 { return float32(math.NaN()) },
	} {
		p := &pair{f: f, rows: 8, cols: 4}
		p.a = weights.Tensor{Info: weights.Info{DType: weights.BF16, Shape: []int{8, 4}}, Data: make([]byte, 64)}
		for i := range 32 {
			f.SetElem(p.a.Data, i, f.FromValue(value(i)))
		}
		p.b = p.a
		im, found, err := p.find(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		d, err := p.compare(t.Context(), &im, nil, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !found || d.changed != 0 || d.spread != 0 {
			t.Errorf("%s: found %v, %+v", name, found, d)
		}
	}
}

func TestDecibelsOfNoSignalAreAbsent(t *testing.T) {
	if db := decibels(0, 1); db != nil {
		t.Errorf("%g dB", *db)
	}
}

// TestFoundSignsAreFew: of two equal choices of signs, the search finds the one that flips fewer rows and columns.
func TestFoundSignsAreFew(t *testing.T) {
	f, _ := weights.F32.Format()
	rng := rand.New(rand.NewPCG(9, 9))
	for range 60 {
		rows, cols := 1+rng.IntN(12), 1+rng.IntN(12)
		share := rng.Float64()
		flip := image{rowFlip: make([]bool, rows), colFlip: make([]bool, cols)}
		for i := range flip.rowFlip {
			flip.rowFlip[i] = rng.Float64() < share
		}
		for i := range flip.colFlip {
			flip.colFlip[i] = rng.Float64() < share
		}
		n := 4 * rows * cols
		tensor := weights.Tensor{Info: weights.Info{DType: weights.F32, Shape: []int{rows, cols}}, Data: make([]byte, n)}
		p := &pair{f: f, rows: rows, cols: cols, a: tensor, b: tensor}
		p.b.Data = make([]byte, n)
		for i := range rows * cols {
			v := float32(1 + rng.Float64())
			f.SetElem(p.a.Data, i, f.FromValue(v))
			if flip.rowFlip[i/cols] != flip.colFlip[i%cols] {
				v = -v
			}
			f.SetElem(p.b.Data, i, f.FromValue(v))
		}
		var im image
		if err := p.findSigns(t.Context(), &im); err != nil {
			t.Fatal(err)
		}
		for i := range rows * cols {
			if (flag(im.rowFlip, i/cols) != flag(im.colFlip, i%cols)) != (flip.rowFlip[i/cols] != flip.colFlip[i%cols]) {
				t.Fatalf("%d×%d: element %d has another sign", rows, cols, i)
			}
		}
		if n := countTrue(im.rowFlip) + countTrue(im.colFlip); n > (rows+cols)/2 || n == 0 != (im.rowFlip == nil) {
			t.Fatalf("%d×%d: %d are flipped", rows, cols, n)
		}
	}
}
