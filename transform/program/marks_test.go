package program_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform/program"
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
