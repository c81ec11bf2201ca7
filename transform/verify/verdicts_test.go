package verify

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

var numbers = regexp.MustCompile(`-?[0-9][0-9.e+-]*`)

// verdict returns "ok", or the numbers in a message.
func verdict(err error) string {
	if err == nil {
		return "ok"
	}
	return strings.Join(append([]string{"refused"}, numbers.FindAllString(err.Error(), -1)...), " ")
}

// claimOf returns the claim of a step with the given data.
func claimOf(t *testing.T, c *Check, js string) *Claim {
	t.Helper()
	claim, err := c.Claim(&plan.Step{Pass: "p", Tensor: "w", Data: json.RawMessage(js)})
	testmodel.OK(t, err)
	return claim
}

// someCodes returns matrices of FP8 numbers, of integers, and of integers with zero points. Values are about size times the smallest code.
func someCodes(size float64) map[string]*quant.Matrix {
	f, _ := weights.F8E4M3.Format()
	fp8 := make([]float32, 256)
	for c := range fp8 {
		fp8[c] = f.Value(uint32(c))
	}
	ints := make([]float32, 16)
	for c := range ints {
		ints[c] = float32(c)
	}
	all := map[string]*quant.Matrix{
		"fp8":         {N: 4, K: 6, Block: [2]int{2, 3}, Global: 1, Book: quant.Book{Codes: "fp8", Values: fp8, ScaleType: weights.F32}},
		"int4":        {N: 4, K: 6, Block: [2]int{1, 3}, Global: 1, Book: quant.Book{Codes: "int4", Values: ints, Zero: 8, ScaleType: weights.F16}},
		"zero points": {N: 4, K: 6, Block: [2]int{1, 3}, Global: 1, Book: quant.Book{Codes: "int4", Values: ints, Zero: 8, ScaleType: weights.F16}, Zeros: []uint8{8, 7, 6, 8, 9, 8, 0, 15}},
	}
	for name, m := range all {
		rng := rand.New(rand.NewPCG(uint64(len(name)), math.Float64bits(size)))
		for range m.N * m.K {
			code := byte(rng.IntN(16))
			if name == "fp8" {
				code = byte(f.FromValue(float32(rng.NormFloat64() * size / 512)))
			}
			m.Codes = append(m.Codes, code)
		}
		for i := range m.N / m.Block[0] * (m.K / m.Block[1]) {
			m.Scales = append(m.Scales, float32(1+i)/4)
		}
	}
	return all
}

// TestVerdictsOnCodes: the checks of passes for codes accept and refuse the recorded changes of codes and scales.
func TestVerdictsOnCodes(t *testing.T) {
	var b strings.Builder
	claims := []struct {
		name  string
		check *Check
		data  []string
	}{
		{"zeros", PositiveZero, []string{`{}`}},
		{"scales", Scales, []string{`{"bits":0}`, `{"bits":1}`, `{"bits":3}`, `{"bits":5}`, `{"bits":6}`, `{"bits":7}`, `{"bits":8}`}},
		{"round", Round, []string{`{"zeroed":0}`, `{"zeroed":1}`, `{"zeroed":2}`}},
		{"grid", Grid, []string{`{"s":0.5}`, `{"s":1}`, `{"s":2}`, `{"s":8}`}},
	}
	for _, size := range []float64{32, 37, 43, 50, 58, 150, 3e4} {
		for _, name := range []string{"fp8", "int4", "zero points"} {
			source := someCodes(size)[name]
			changes := map[string]func(m *quant.Matrix){
				"0 unchanged":     func(m *quant.Matrix) {},
				"1 even":          func(m *quant.Matrix) { each(m.Codes, func(c byte) byte { return c &^ 1 }) },
				"2 by four":       func(m *quant.Matrix) { each(m.Codes, func(c byte) byte { return (c + 2) &^ 3 & 0xF }) },
				"3 one code":      func(m *quant.Matrix) { m.Codes[7] ^= 1 },
				"4 another code":  func(m *quant.Matrix) { m.Codes[m.K*m.N-1] ^= 2 },
				"5 negative zero": func(m *quant.Matrix) { m.Codes[5] = byte(len(m.Book.Values) / 2) },
				"6 NaN":           func(m *quant.Matrix) { m.Codes[4] = byte(len(m.Book.Values)/2 - 1) },
			}
			for i, by := range []float32{2, 4, 0.5, 1.5, 2.25, 0, 1.0625} {
				changes[fmt.Sprintf("7 scale %d times %g", i%2, by)] = func(m *quant.Matrix) { m.Scales[i%2] *= by }
				changes[fmt.Sprintf("8 scales times %g", by)] = func(m *quant.Matrix) { each(m.Scales, func(s float32) float32 { return s * by }) }
			}
			for _, change := range sortedKeys(changes) {
				result := source.Clone()
				changes[change](result)
				all := map[string]*Codes{
					"alone":     {Source: source, Result: result, Near: source.Row, Alone: true},
					"feedback":  {Source: source, Result: result, Near: source.Row, Feedback: true},
					"unknown":   {Source: source, Result: result, Alone: true},
					"reference": {Source: source, Result: result, Near: source.Row, Reference: true, Alone: true},
					"made":      {Result: result, Near: source.Row, Reference: true},
				}
				var refused [5]int
				sum := sha256.New()
				for i, how := range sortedKeys(all) {
					for _, c := range claims {
						for _, data := range c.data {
							if err := claimOf(t, c.check, data).Codes(t.Context(), all[how]); err != nil {
								refused[i]++
								fmt.Fprintf(sum, "%s %s %s %s;", how, c.name, data, verdict(err))
							}
						}
					}
				}
				fmt.Fprintf(&b, "%s of %g, %s: refused %v, %.4x\n", name, size, change, refused, sum.Sum(nil))
			}
		}
	}
	goldenfile.Same(t, "testdata/codes.txt", []byte(b.String()))
}

// each replaces the elements of a list.
func each[T any](list []T, by func(T) T) {
	for i, v := range list {
		list[i] = by(v)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// matrixOf stores values in a type.
func matrixOf(d weights.DType, rows, cols int, value func(n, k int) float32) weights.Tensor {
	var v []float32
	for i := range rows * cols {
		v = append(v, value(i/cols, i%cols))
	}
	x := testmodel.Matrix(d, cols, v)
	x.Name = "w"
	return x
}

// TestVerdictsOnValues: the checks of passes for values accept and refuse the recorded results, and allow the recorded distances.
func TestVerdictsOnValues(t *testing.T) {
	var b strings.Builder
	for _, d := range []weights.DType{weights.BF16, weights.F32, weights.F8E5M2, weights.I8} {
		f, _ := d.Format()
		x := matrixOf(d, 3, 5, func(n, k int) float32 { return float32((n+1)*(k-2)) * 1.5 })
		for _, outAxis := range []int{0, 1} {
			p := newPair(x, x, f)
			r := &Result{Format: f, Rows: 3, Cols: 5, OutAxis: outAxis, pair: p, image: image{row: []int{2, 0, 1}}}
			holds := func(c *Check, js string) {
				fmt.Fprintf(&b, "%s, outputs %d, %s: %s\n", d, outAxis, js, verdict(claimOf(t, c, js).Holds(t.Context(), r)))
			}
			for zeroed := range 9 {
				holds(Round, fmt.Sprintf(`{"zeroed":%d}`, zeroed))
			}
			for _, list := range []string{"[-1,-1,-1]", "[0,-1,0]", "[-1,0,-1]", "[-800,-800,-800]", "[-801,-1,-1]", "[-1,-1,800]", "[-1,-1,801]", "[-1,-1]", "[-1,-1,-1,-1,-1]", "[0,0,0,0,-1]", "[-2,-2,-1,-1,-1]", "[-1,-1,-1,-1,3]"} {
				holds(Grid, `{"exponents":`+list+`}`)
			}
			for _, list := range []string{`"inputs":[2]`, `"inputs":[2,0]`, `"inputs":[5]`, `"inputs":[3]`, `"inputs":[-1]`, `"inputs":[4]`, `"outputs":[0]`, `"outputs":[2]`, `"outputs":[3]`, `"outputs":[-1]`, `"outputs":[4]`, `"outputs":[5]`} {
				holds(Prune, `{`+list+`}`)
			}
		}
		for _, v := range []float64{0, 1e-30, 0.75, -0.75, 1, 1.99, 2, 100, 127, 5e4, 1e30} {
			fmt.Fprintf(&b, "%s at %g: spacing %.6g,", d, v, spacing(f, math.Abs(v)))
			for _, bound := range []float64{0, 0.3, 4} {
				for _, c := range []*Claim{claimOf(t, Round, `{"zeroed":2}`), claimOf(t, Round, `{"zeroed":3,"truncate":true}`), claimOf(t, Grid, `{"exponents":[3,-4]}`)} {
					fmt.Fprintf(&b, " %.6g", c.Within(f, 1, v, bound))
					fmt.Fprintf(&b, " %.6g", c.Within(f, 2, v, bound))
				}
			}
			fmt.Fprintln(&b)
		}
		for _, claims := range [][]*Claim{nil, {{}}, {{Anywhere: true}}, {claimOf(t, Grid, `{"exponents":[1,3]}`)}, {claimOf(t, Grid, `{"exponents":[1,3]}`), claimOf(t, Round, `{"zeroed":2}`)}, {{Zeros: &Zeros{Runs: 1}}, claimOf(t, Round, `{"zeroed":1}`)}} {
			for outAxis := range 2 {
				may := newTolerance(f, outAxis, claims)
				fmt.Fprintf(&b, "%s, %d claims, outputs %d, zeros %v:", d, len(claims), outAxis, may.zeros != nil)
				for _, off := range []float64{0, 0.001, 1, 1.0001, 2, 4, 4.0001, 4.5, 5, 9} {
					for _, v := range []float64{0, 3, float64(f.Value(f.MaxFinite)) - 1} {
						fmt.Fprintf(&b, " %t", may.allows(0, 1, v+off, v))
					}
				}
				fmt.Fprintf(&b, " %q %q %q\n", may.wrong(1, 0, 0, 3, true), numbers.FindAllString(may.wrong(1, 0, 1e9, 3, true), -1), numbers.FindAllString(may.wrong(1, 0, 1e9, 3, false), -1))
			}
		}
	}
	for _, js := range []string{`{}`, `{"block":[4,2]}`, `{"block":[0,2]}`, `{"block":[4,0]}`, `{"block":[1,1]}`, `{"block":[64,4096]}`, `{"block":[65,1]}`, `{"block":[128,1]}`, `{"block":[3,1]}`, `{"block":[1,4097]}`, `{"runs":1}`, `{"runs":0}`, `{"runs":1,"block":[1,1]}`, `{"pattern":"2:4"}`, `{"pattern":"1:4"}`, `{"pattern":"2:4","runs":2}`} {
		_, err := Sparsify.Claim(&plan.Step{Data: json.RawMessage(`{"zeros":` + js + `}`)})
		_, flat := Sparsify.Claim(&plan.Step{Data: json.RawMessage(js)})
		fmt.Fprintf(&b, "zeros %s: %s, %s\n", js, verdict(err), verdict(flat))
	}
	for name, z := range map[string]*Zeros{"tiles": {Block: &[2]int{2, 2}, Threshold: 4, Ties: 7}, "fours": {Pattern: "2:4"}, "runs": {Runs: 3}} {
		for outAxis := range 2 {
			var zero []string
			s := newZeroing(z, 7, 9, outAxis)
			for n := range 7 {
				row := s.row(n, func(dst []float32, n int) {
					for k := range dst {
						dst[k] = float32((n*3+k*5)%7) - 3
						if n < 4 {
							dst[k] = 2
						}
					}
				})
				zero = append(zero, strings.NewReplacer("true", "0", "false", "x", " ", "").Replace(fmt.Sprint(row)))
			}
			t.Run(fmt.Sprintf("%s %d", name, outAxis), func(t *testing.T) {
				goldenfile.Same(t, fmt.Sprintf("testdata/%s%d.txt", name, outAxis), []byte(strings.Join(zero, "\n")+"\n"))
			})
		}
	}
	goldenfile.Same(t, "testdata/values.txt", []byte(b.String()))
}

// TestUndo: an image of a quantised matrix, undone, is the matrix. Scales, zero points or signs that do not follow the image are refused.
func TestUndo(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for name, a := range someCodes(150) {
		if name == "int4" {
			a.Group = []int32{0, 1, 1, 0, 0, 1}
		}
		if name == "fp8" {
			a.Block = [2]int{1, 1}
			a.Scales = nil
			for range a.N * a.K {
				a.Scales = append(a.Scales, float32(1+rng.IntN(7)))
			}
		}
		for _, flips := range []bool{false, name == "fp8"} {
			im := &image{row: rng.Perm(a.N), rowExp: []int{1, -2, 0, 3}}
			if name == "fp8" {
				im.col, im.colExp = rng.Perm(a.K), []int{0, 1, 2, -1, -2, 0}
			}
			if name == "int4" {
				im.col = []int{3, 4, 0, 1, 2, 5} // groups 0 0 0 1 1 1
			}
			if flips {
				im.rowFlip, im.colFlip = []bool{true, false, false, true}, []bool{false, true, true, false, true, false}
			}
			b := a.Clone()
			if a.Group != nil {
				b.Group = nil // places in order
				b.Block = [2]int{1, 3}
			}
			for n := range a.N {
				for k := range a.K {
					from, i := a.Place(im.row[n], place(im.col, k)), n*a.K+k
					b.Scales[b.Place(n, k)] = float32(math.Ldexp(float64(a.Scales[from]), im.rowExp[n]+number(im.colExp, k)))
					if a.Zeros != nil {
						b.Zeros[b.Place(n, k)] = a.Zeros[from]
					}
					b.Codes[i] = a.Codes[im.row[n]*a.K+place(im.col, k)]
					if flag(im.rowFlip, n) != flag(im.colFlip, k) {
						b.Codes[i] ^= 0x80
					}
				}
			}
			got, err := im.undo(b, a.Group)
			if err != nil || !slices.Equal(got.Codes, a.Codes) || !slices.Equal(got.Scales, a.Scales) || !slices.Equal(got.Zeros, a.Zeros) || !slices.Equal(got.Group, a.Group) {
				t.Errorf("%s, flips %v: undone it is another matrix (%v)", name, flips, err)
			}
			if name == "int4" || name == "zero points" { // one scale in the place of several
				mixed := &image{col: []int{0, 3, 1, 4, 2, 5}}
				c := a.Clone()
				c.Group = nil
				if _, err := mixed.undo(c, nil); err == nil {
					t.Errorf("%s: scales that do not follow the columns are accepted", name)
				}
				flipped := &image{rowFlip: []bool{true, true, true, true}}
				c.Codes[3] = 0 // −8 has no opposite
				if _, err := flipped.undo(c, nil); err == nil && name == "int4" {
					t.Errorf("%s: a code without an opposite is accepted", name)
				}
			}
		}
	}
	m := someCodes(32)["int4"]
	if got, want := opposites(m, 8), []int{-1, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("opposites %v, want %v", got, want)
	}
	m.Book.Values = []float32{0, 1, float32(math.Copysign(0, -1)), -1, 0.5}
	if got, want := opposites(m, 0), []int{0, 3, 2, 1, -1}; !slices.Equal(got, want) {
		t.Errorf("opposites %v, want %v", got, want)
	}
}

// TestMovedBytes: elements of a type that cannot be decoded follow an order, and nothing else.
func TestMovedBytes(t *testing.T) {
	for _, d := range []weights.DType{weights.I64, weights.U8, weights.F64} {
		size := d.Bits() / 8
		tensor := func() weights.Tensor {
			return weights.Tensor{Info: weights.Info{DType: d, Shape: []int{3, 4}}, Data: make([]byte, 12*size)}
		}
		p, im := &pair{a: tensor(), b: tensor(), rows: 3, cols: 4}, &image{row: []int{2, 0, 1}, col: []int{1, 3, 0, 2}}
		for i := range p.a.Data {
			p.a.Data[i] = byte(i*7 + 1)
		}
		for n := range 3 {
			for k := range 4 {
				copy(p.b.Data[(4*n+k)*size:][:size], p.a.Data[(4*im.row[n]+im.col[k])*size:])
			}
		}
		if !p.moved(im) {
			t.Errorf("%s: the order is not seen", d)
		}
		if p.moved(&image{}) {
			t.Errorf("%s: another order is accepted", d)
		}
		for _, marked := range []image{{rowFlip: make([]bool, 3)}, {colFlip: make([]bool, 4)}, {rowExp: make([]int, 3)}, {colExp: make([]int, 4)}} {
			marked.row, marked.col = im.row, im.col
			if p.moved(&marked) {
				t.Errorf("%s: %+v is accepted", d, marked)
			}
		}
		for i := range p.b.Data {
			p.b.Data[i] ^= 1
			if p.moved(im) {
				t.Errorf("%s: another byte %d is accepted", d, i)
			}
			p.b.Data[i] ^= 1
		}
	}
}

// TestCounts: helpers of comparisons count and place what they say.
func TestCounts(t *testing.T) {
	x := matrixOf(weights.F32, 2, 3, func(n, k int) float32 { return float32(n) - float32(k) })
	f, _ := weights.F32.Format()
	f.SetElem(x.Data, 1, f.ExpMask())
	f.SetElem(x.Data, 5, f.ExpMask()|1)
	p := newPair(x, x, f)
	if n := p.nonFinite(); n != 2 {
		t.Errorf("%d values are not finite", n)
	}
	for _, inputRows := range []bool{false, true} {
		p.inputRows = inputRows
		want := map[bool][2]int{false: {3, 2}, true: {2, 1}}[inputRows]
		if got := [2]int{p.inputs(), p.input(1, 2)}; got != want {
			t.Errorf("inputs %v, want %v", got, want)
		}
	}
	im := &image{row: []int{1, 0, 2}, col: []int{0, 1}, rowFlip: []bool{true, false, true}, colFlip: []bool{false, false}, rowExp: []int{0, 3, -1}, colExp: []int{0, 1}}
	if got, want := *im.summary("found"), (Relation{2, 0, 2, 0, 2, 1, "found"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if (&image{row: []int{0, 1}, rowFlip: []bool{false}, colExp: []int{0}}).summary("found") != nil {
		t.Error("an image that changes nothing has a summary")
	}
	d := &difference{}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	d.row([]float32{1, 2, 3, nan, inf, 4, nan, 0, inf}, []float32{1, 0, 3.5, nan, 7, nan, inf, 0, inf})
	if *d != (difference{signal: 14, noise: 4.25, changed: 2, spread: 2, nonFinite: 5, zerosAdded: 1}) {
		t.Errorf("%+v", *d)
	}
	if db := decibels(100, 1); db == nil || *db != 20 {
		t.Errorf("%v", db)
	}
	if decibels(1, 0) != nil || decibels(math.Inf(1), 1) != nil {
		t.Error("decibels without noise")
	}
}

// TestSameFile: files are the same only if all their bytes are.
func TestSameFile(t *testing.T) {
	const block = 1 << 16
	content := map[string][]byte{}
	for _, n := range []int{0, 1, 5, block - 1, block, block + 1, 2 * block, 2*block + 3} {
		content[fmt.Sprint(n)] = bytes.Repeat([]byte("a"), n)
		if n > 0 {
			content[fmt.Sprint(n, " other end")] = append(bytes.Repeat([]byte("a"), n-1), 'b')
			content[fmt.Sprint(n, " other beginning")] = append([]byte("b"), bytes.Repeat([]byte("a"), n-1)...)
		}
	}
	dirs := [2]string{t.TempDir(), t.TempDir()}
	var models [2]*weights.Model
	head, _, err := weights.EncodeHeader([]weights.Info{{Name: "a", DType: weights.U8, Shape: []int{1}}}, nil)
	testmodel.OK(t, err)
	for i, dir := range dirs {
		testmodel.OK(t, os.WriteFile(filepath.Join(dir, "model.safetensors"), append(head, 0), 0o666))
		models[i], err = weights.Open(dir)
		testmodel.OK(t, err)
		defer models[i].Close()
	}
	for x, a := range content {
		for y, b := range content {
			testmodel.OK(t, os.WriteFile(filepath.Join(dirs[0], "f"), a, 0o666))
			testmodel.OK(t, os.WriteFile(filepath.Join(dirs[1], "f"), b, 0o666))
			same, err := sameFile(models[0], models[1], "f")
			if err != nil || same != bytes.Equal(a, b) {
				t.Errorf("%s and %s: same %v (%v)", x, y, same, err)
			}
		}
	}
	testmodel.OK(t, os.WriteFile(filepath.Join(dirs[0], "one"), nil, 0o666))
	for _, order := range [][2]int{{0, 1}, {1, 0}} {
		if _, err := sameFile(models[order[0]], models[order[1]], "one"); !os.IsNotExist(err) {
			t.Errorf("a missing file: %v", err)
		}
	}
}

// TestFoundImages: the search finds the recorded images, in matrices with zeros, NaN, infinity, equal rows and large powers of two.
func TestFoundImages(t *testing.T) {
	var b strings.Builder
	for seed := range uint64(24) {
		rng := rand.New(rand.NewPCG(seed, 4))
		d := []weights.DType{weights.F32, weights.BF16, weights.F16, weights.F8E4M3, weights.I8}[seed%5]
		f, _ := d.Format()
		rows, cols := 3+rng.IntN(70), 2+rng.IntN(40)
		p := &pair{f: f, rows: rows, cols: cols}
		p.a = matrixOf(d, rows, cols, func(n, k int) float32 {
			switch rng.IntN(20) {
			case 0:
				return 0
			case 1:
				return 1
			}
			return float32(rng.NormFloat64() * 8)
		})
		p.b = matrixOf(d, rows, cols, func(n, k int) float32 { return 0 })
		im := image{row: rng.Perm(rows), col: rng.Perm(cols), rowExp: make([]int, rows), colExp: make([]int, cols), rowFlip: make([]bool, rows), colFlip: make([]bool, cols)}
		for n := range rows {
			im.rowFlip[n] = seed%3 == 1 && rng.IntN(3) == 0
			im.rowExp[n] = int(seed%2) * (rng.IntN(4) - 1)
		}
		for k := range cols {
			im.colFlip[k] = seed%4 == 1 && rng.IntN(3) == 0
		}
		for n := range rows {
			for k := range cols {
				v := p.value(p.a, im.row[n], im.col[k])
				if im.rowFlip[n] != im.colFlip[k] {
					v = -v
				}
				f.SetElem(p.b.Data, n*cols+k, f.FromValue(float32(math.Ldexp(v, im.rowExp[n]))))
			}
		}
		if seed > 15 { // special values and noise
			for range 1 + rows*cols/50 {
				f.SetElem(p.b.Data, rng.IntN(rows*cols), uint32(rng.Uint64())&(1<<f.Bits-1))
				f.SetElem(p.a.Data, rng.IntN(rows*cols), f.MaxFinite+uint32(rng.IntN(2)))
			}
		}
		found, ok, err := p.find(t.Context())
		testmodel.OK(t, err)
		difference, err := p.compare(t.Context(), &found, nil, 0, nil)
		testmodel.OK(t, err)
		fmt.Fprintf(&b, "%s %d×%d: found %v, %.4x, in place %v, %d low bits; signal %.6g noise %.6g changed %d spread %d not finite %d zeros %d\n", d, rows, cols, ok, sha256.Sum256(fmt.Append(nil, found)), p.inPlace(), p.zeroBits(p.b),
			difference.signal, difference.noise, difference.changed, difference.spread, difference.nonFinite, difference.zerosAdded)
	}
	f, _ := weights.F32.Format()
	values := []float32{0, 1, -1, 1.4142, 1.41422, -3, 1e38, 1e-38, -1e-44, float32(math.Inf(1)), float32(math.NaN()), 0.7}
	p := newPair(matrixOf(weights.F32, 1, len(values), func(_, k int) float32 { return values[k] }), matrixOf(weights.F32, 1, len(values), func(_, k int) float32 { return values[k] }), f)
	for i := range values {
		for j := range values {
			im := &image{col: make([]int, len(values))}
			im.col[j] = i
			e, negative, ok := p.octaves(im, 0, j)
			fmt.Fprintf(&b, " %d %t %t", e, negative, ok)
		}
		fmt.Fprintln(&b)
	}
	for _, list := range [][]int{nil, {3}, {1, 2, 2, 1}, {-1200, 1200}, {0, 5, 5, -7, -7, -7}} {
		n := p.commonest(len(list), func(i int) (int, bool) { return list[i], list[i] != 5 })
		fmt.Fprintf(&b, "the commonest of %v is %d\n", list, n)
	}
	for _, n := range []int{0, 1, 3, 7, 10} {
		evenly(n, 4, func(i int) { fmt.Fprintf(&b, " %d", i) })
		fmt.Fprintf(&b, " of %d\n", n)
	}
	for _, c := range [][2][]uint64{{{5, 3, 3, 9}, {3, 9, 3, 5}}, {{5, 3}, {5, 4}}, {{}, {}}, {{1, 1}, {1, 1}}} {
		m, ok := match(c[0], c[1])
		fmt.Fprintf(&b, "%v in %v: %v %v\n", c[1], c[0], m, ok)
	}
	for _, d := range []weights.DType{weights.F8E4M3, weights.I8} {
		f, _ := d.Format()
		for _, q := range []quantiser{{}, {1, false}, {1, true}, {2, false}, {3, true}} {
			sum, mixed := sha256.New(), q.mixer(f)
			for v := range uint32(256) {
				fmt.Fprintln(sum, q.mantissa(f, v), mixed(v))
			}
			fmt.Fprintf(&b, "%s, %+v: %.4x\n", d, q, sum.Sum(nil))
		}
	}
	goldenfile.Same(t, "testdata/images.txt", []byte(b.String()))
}

// TestImpossibleClaims: claims on a missing index, tensor or vector, or for another family, are refused.
func TestImpossibleClaims(t *testing.T) {
	m := testmodel.Tiny(t, "gpt2-tiny", weights.BF16)
	layout := testmodel.LayoutOf(t, m)
	symmetry := &Check{Symmetry: func(*plan.Step, *arch.Index) (Symmetry, error) { return Symmetry{}, nil }}
	claim := &Check{Claim: func(*plan.Step) (*Claim, error) { return &Claim{}, nil }}
	checks := map[string]*Check{"s": symmetry, "c": claim}
	name := m.Infos()[0].Name
	for what, c := range map[string]struct {
		layout *arch.Layout
		family string
		steps  []*plan.Step
		ok     bool
	}{
		"nothing":        {layout, layout.Family, nil, true},
		"no family":      {nil, "", nil, true},
		"other family":   {layout, "other", nil, false},
		"unknown family": {nil, layout.Family, nil, false},
		"index":          {layout, layout.Family, []*plan.Step{{Pass: "s", Index: layout.Indices[0].Name}}, true},
		"no index":       {layout, layout.Family, []*plan.Step{{Pass: "s", Index: "none"}}, false},
		"no layout":      {nil, "", []*plan.Step{{Pass: "s", Index: layout.Indices[0].Name}}, false},
		"tensor":         {layout, layout.Family, []*plan.Step{{Pass: "c", Tensor: name}}, true},
		"two steps":      {layout, layout.Family, []*plan.Step{{Pass: "c", Tensor: name}, {Pass: "c", Tensor: name}}, false},
		"no tensor":      {layout, layout.Family, []*plan.Step{{Pass: "c", Tensor: "none"}}, false},
		"no check":       {layout, layout.Family, []*plan.Step{{Pass: "x", Tensor: name}}, false},
	} {
		p := &plan.Plan{DropIn: true, Steps: c.steps}
		p.Model.Family = c.family
		if got, err := newClaims(m, c.layout, nil, nil, p, checks); (err == nil) != c.ok {
			t.Errorf("%s: %v", what, err)
		} else if err == nil {
			for _, vector := range []string{"none", "", "transformer.h.0.mlp.c_fc.weight"} {
				if _, err := got.vector(vector); err == nil {
					t.Errorf("%q is a vector", vector)
				}
			}
			if v, err := got.vector("transformer.h.0.ln_1.weight"); err != nil || len(v) == 0 {
				t.Errorf("a norm has %d values (%v)", len(v), err)
			}
		}
	}
	ix := &arch.Index{Name: "i", Len: 3, Permute: true, Sign: true, Scale: true}
	for what, c := range map[string]struct {
		s  Symmetry
		ix arch.Index
		ok bool
	}{
		"order": {Symmetry{Order: []int{2, 0, 1}}, *ix, true}, "signs": {Symmetry{Flip: []int{0, 2}}, *ix, true}, "exponents": {Symmetry{Exponents: []int{1, 0, -1}}, *ix, true},
		"short": {Symmetry{Order: []int{1, 0}}, *ix, false}, "twice": {Symmetry{Order: []int{0, 0, 1}}, *ix, false}, "negative": {Symmetry{Order: []int{0, -1, 1}}, *ix, false}, "outside": {Symmetry{Order: []int{0, 3, 1}}, *ix, false},
		"sign 3": {Symmetry{Flip: []int{3}}, *ix, false}, "sign -1": {Symmetry{Flip: []int{-1}}, *ix, false}, "two exponents": {Symmetry{Exponents: []int{1, 0}}, *ix, false},
		"no order": {Symmetry{Order: []int{2, 0, 1}}, arch.Index{Len: 3, Sign: true, Scale: true}, false}, "no sign": {Symmetry{Flip: []int{1}}, arch.Index{Len: 3, Permute: true, Scale: true}, false},
		"no scale": {Symmetry{Exponents: []int{1, 0, -1}}, arch.Index{Len: 3, Permute: true, Sign: true}, false}, "blocked": {Symmetry{}, arch.Index{Len: 3, Permute: true, Sign: true, Scale: true, Blocked: "why"}, false},
	} {
		if err := (&claims{perm: map[string][]int{}, flip: map[string][]bool{}, exp: map[string][]int{}}).symmetry(c.s, &c.ix); (err == nil) != c.ok {
			t.Errorf("%s: %v", what, err)
		}
	}
}
