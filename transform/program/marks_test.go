package program_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// drawAxis draws the map of symmetries along an axis of length n, with exponents within ±most.
func drawAxis(t *rapid.T, n, most int, name string) (a program.AxisMap) {
	if rapid.Bool().Draw(t, name+" moved") {
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		a.Gather = rapid.Permutation(all).Draw(t, name+" order")
	}
	if rapid.Bool().Draw(t, name+" flipped") {
		a.Flip = rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, name+" signs")
	}
	if rapid.Bool().Draw(t, name+" scaled") {
		a.Exp = rapid.SliceOfN(rapid.IntRange(-most, most), n, n).Draw(t, name+" exponents")
	}
	return a
}

// TestMarksAreThoseOfEachElement: signs and powers of two on a row give the results of Scaled on its elements. The
// error names the first element that they do not scale exactly.
func TestMarksAreThoseOfEachElement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(testmodel.DTypes).Draw(t, "type")
		f := testmodel.FormatOf(d)
		rows, cols := rapid.IntRange(1, 4).Draw(t, "rows"), rapid.IntRange(1, 19).Draw(t, "columns")
		data := testmodel.DrawBytes(t, rows*cols*f.Bits/8, "data")
		if rapid.Bool().Draw(t, "ordinary") { // values that small powers scale exactly, except one or none
			one := rapid.IntRange(-1, rows*cols-1).Draw(t, "other value")
			for i := range rows * cols {
				if middle := uint32(1) << (f.Bits - 3); i != one {
					f.SetElem(data, i, f.Elem(data, i)&^(f.ExpMask()&^f.MantMask())|middle)
				}
			}
		}
		most := rapid.SampledFrom([]int{1, 4, 300, 1000}).Draw(t, "largest exponent")
		p := &program.Program{
			Source: testplan.Weight(testmodel.Memory(d, []int{rows, cols}, data)), Format: f, Rows: rows, Cols: cols, Unit: 1,
			Row: drawAxis(t, rows, most, "rows"), Col: drawAxis(t, cols, most, "columns"),
		}
		got := make([]byte, len(data))
		p.Run(got, 0, rows)
		for n := range rows {
			for k := range cols {
				i, j := p.Row.From(n), p.Col.From(k)
				want, _ := program.Scaled(f, f.Elem(data, i*cols+j), p.Row.Flipped(i) != p.Col.Flipped(j), p.Row.Power(i)+p.Col.Power(j))
				if b := f.Elem(got, n*cols+k); b != want {
					t.Fatalf("%s: element [%d, %d] is %#x, want %#x", d, n, k, b, want)
				}
			}
		}
		inexact := ""
		for i := 0; i < rows*cols && inexact == ""; i++ {
			n, k := i/cols, i%cols
			flip, exp := p.Row.Flipped(n) != p.Col.Flipped(k), p.Row.Power(n)+p.Col.Power(k)
			if _, ok := program.Scaled(f, f.Elem(data, i), flip, exp); !ok && (flip || exp != 0) {
				inexact = fmt.Sprintf("element [%d, %d] cannot be multiplied by ±2^%d exactly", n, k, exp)
			}
		}
		err := p.CheckExact(t.Context())
		if inexact == "" {
			testmodel.OK(t, err)
		} else if err == nil || !strings.Contains(err.Error(), inexact) {
			t.Fatalf("%s: %v, want %s", d, err, inexact)
		}
	})
}

// TestSafeMagnitudes: all safe magnitudes are multiplied exactly, and fn gets the others in order.
func TestSafeMagnitudes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(testmodel.DTypes).Draw(t, "type")
		f := testmodel.FormatOf(d)
		n := rapid.IntRange(0, 23).Draw(t, "elements")
		row := testmodel.DrawBytes(t, n*f.Bits/8, "row")
		low := rapid.IntRange(-9, 9).Draw(t, "lowest exponent")
		high := rapid.IntRange(low, 9).Draw(t, "highest exponent")
		s := program.SafeMagnitudes(f, low, high)
		others := map[int]bool{}
		last := -1
		s.Others(row, func(k int) bool {
			if k <= last || k >= n {
				t.Fatalf("%d after %d of %d elements", k, last, n)
			}
			last, others[k] = k, true
			return true
		})
		for k := range n {
			b := f.Elem(row, k)
			for e := low; e <= high && !others[k]; e++ {
				for _, flip := range []bool{false, true} {
					if _, ok := program.Scaled(f, b, flip, e); !ok {
						t.Fatalf("%s: %#x is safe, and times 2^%d is not exact", d, b, e)
					}
				}
			}
			normal := f.IsFloat() && f.Finite(b) && b&f.ExpMask() != 0
			_, lowest := program.Scaled(f, b, false, low)
			_, highest := program.Scaled(f, b, false, high)
			if normal && lowest && highest && low <= 0 && high >= 0 && others[k] {
				t.Fatalf("%s: %#x takes all powers exactly, and is not safe", d, b)
			}
		}
		if len(others) > 0 {
			calls := 0
			s.Others(row, func(int) bool { calls++; return false })
			if calls != 1 {
				t.Fatalf("%d calls after the first returned false", calls-1)
			}
		}
	})
}

// TestOthersOfWords: an element is safe in a word of four elements if it is safe alone.
func TestOthersOfWords(t *testing.T) {
	for _, d := range []weights.DType{weights.BF16, weights.F16} {
		f := testmodel.FormatOf(d)
		s := program.SafeMagnitudes(f, -3, 2)
		for b := range uint32(1) << 16 {
			row := make([]byte, 10)
			for k := range 5 {
				f.SetElem(row, k, b)
			}
			all, alone := 0, 0
			s.Others(row[:8], func(int) bool { all++; return true })
			s.Others(row[8:], func(int) bool { alone++; return true })
			if all != 4*alone {
				t.Fatalf("%s %#x: %d of 4 elements are not safe, and %d alone", d, b, all, alone)
			}
		}
	}
}

// TestNothingIsSafe: no magnitude of an integer, and none that a wide range of powers takes out of the format, is safe.
func TestNothingIsSafe(t *testing.T) {
	for _, d := range testmodel.DTypes {
		f := testmodel.FormatOf(d)
		wide := 1 << f.ExpBits
		for _, powers := range [][2]int{{0, 0}, {-1, 1}, {-wide, 0}, {0, wide}, {-wide / 2, wide / 2}} {
			if f.IsFloat() && powers[1]-powers[0] < wide {
				continue
			}
			s := program.SafeMagnitudes(f, powers[0], powers[1])
			var row []byte
			for i := range 9 {
				row = append(row, make([]byte, f.Bits/8)...)
				magnitude := uint32(i) % 3
				if f.IsFloat() {
					magnitude = uint32(uint64(i) * uint64(f.MaxFinite) / 8)
				}
				f.SetElem(row, i, magnitude)
			}
			visited := 0
			s.Others(row, func(int) bool { visited++; return true })
			if visited != 9 {
				t.Errorf("%s times 2^%d to 2^%d: %d of 9 magnitudes are safe", d, powers[0], powers[1], 9-visited)
			}
		}
	}
}

// TestScaledIntegers: an integer times ±2^exp is exact, or refused and unchanged.
func TestScaledIntegers(t *testing.T) {
	f := testmodel.FormatOf(weights.I8)
	for b := range uint32(256) {
		for _, exp := range []int{-300, -64, -9, -8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 64, 300} {
			for _, flip := range []bool{false, true} {
				want := float64(int8(b)) * math.Ldexp(1, exp)
				if flip {
					want = -want
				}
				got, ok := program.Scaled(f, b, flip, exp)
				exact := want == math.Trunc(want) && want >= -128 && want <= 127
				if ok != exact || ok && float64(int8(got)) != want || !ok && got != b {
					t.Fatalf("%d times 2^%d, opposite %v: %d, exact %v; want %g", int8(b), exp, flip, int8(got), ok, want)
				}
			}
		}
	}
}

// TestCounters: each compiled program and each factorised Hessian counts once.
func TestCounters(t *testing.T) {
	m := testmodel.Tiny(t, "llama-tiny", weights.BF16)
	const name = "model.layers.0.mlp.up_proj.weight"
	x, h := testmodel.TensorOf(t, m, name), testmodel.HessiansOf(t, m)
	steps := []*plan.Step{pass.Compensate.TensorStep(name, pass.Damping{Damp: 0.02}), pass.Round.TensorStep(name, pass.Bits{Zeroed: 2})}
	var count program.Counters
	c, err := program.NewCompiler(program.CompilerOptions{Weights: quant.Group(m, nil), Layout: testmodel.LayoutOf(t, m), Hessians: h, Rules: testplan.Rules(), Count: &count}, steps)
	testmodel.OK(t, err)
	w := testplan.Weight(x)
	p, err := c.Program(t.Context(), w, steps)
	testmodel.OK(t, err)
	testmodel.OK(t, p.Prepare(t.Context(), 1))
	p.Release()
	c.Keep(p)
	if again, err := c.Program(t.Context(), w, steps); err != nil || again != p {
		t.Errorf("a kept program is compiled again (%v)", err)
	}
	if again, err := c.Program(t.Context(), w, steps); err != nil || again == p {
		t.Errorf("a kept program is given twice (%v)", err)
	}
	if count.Programs.Load() != 2 || count.Factors.Load() != 1 {
		t.Errorf("%d programs and %d factors", count.Programs.Load(), count.Factors.Load())
	}
}
