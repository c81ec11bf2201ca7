package pattern

import (
	"bytes"
	"context"
	"errors"
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"pgregory.net/rapid"
)

// TestBlockIsPartOfTheWhole: a block equals its part of the whole matrix, with any number of workers, for any
// pattern. A pattern without NaN and infinity in its input has none in its output.
func TestBlockIsPartOfTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, s := drawPattern(t), drawSpec(t)
		f, _ := s.DType.Format()
		size := f.Bits / 8
		all, err := p.Generate(t.Context(), s, 1)
		if err != nil || len(all) != s.Rows*s.Cols*size {
			t.Fatalf("%d bytes, %v", len(all), err)
		}
		if again, err := p.Generate(t.Context(), s, 7); err != nil || !bytes.Equal(all, again) {
			t.Fatalf("%s: seven workers made other bytes (%v)", p, err)
		}
		rows, cols := drawRange(t, s.Rows, "rows"), drawRange(t, s.Cols, "columns")
		want := make([]byte, rows.len()*cols.len()*size)
		copyBlock(want, all, s.Cols*size, size, rows, cols)
		got, err := p.Block(t.Context(), s, rows, cols)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s: rows %v, columns %v are\n%x (%v), want\n%x", p, rows, cols, got, err, want)
		}
		for i := range len(all) / size {
			if !f.Finite(f.Elem(all, i)) {
				t.Fatalf("%s: element %d is not finite", p, i)
			}
		}
	})
}

// TestPieces: matrices that several workers make in many pieces, in long rows, by tables and by counting equal their
// blocks.
func TestPieces(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and without shared data for the race detector")
	}
	for _, text := range []string{
		"normal(0,1) | round(4) | flip(0.1)", "normal(0,1) | transpose | scale(0.5)", "normal(0,1) | sort(0.3)",
		"normal(0,1) | grid(4) | transpose", "normal(0,1) | sort(0.6,by=within)", "normal(0,1) | sparse(0.5,block=3x5) | repeat(rows=3,columns=2)",
		"set(5,uniform(0,9)) | cycle(rows=7,columns=3)", "normal(0,1) | sort(0.4,by=columns) | signs(columns)",
	} {
		for _, shape := range [][2]int{{300, 1100}, {3, 3*piece + 7}, {2*piece + 3, 2}} {
			for _, d := range []weights.DType{weights.BF16, weights.F32} {
				p, s := MustParse(text), Spec{d, shape[0], shape[1], 4}
				all, err := p.Generate(t.Context(), s, 3)
				if err != nil {
					t.Fatal(err)
				}
				rows, cols := Range{shape[0] / 3, shape[0]/3 + 1}, Range{shape[1] / 3, shape[1]/3 + 1}
				got, err := p.Block(t.Context(), s, rows, cols)
				size := d.Bits() / 8
				if at := (rows.From*s.Cols + cols.From) * size; err != nil || !bytes.Equal(got, all[at:at+size]) {
					t.Errorf("%s of %v: element %d, %d is %x (%v), want %x", p, s, rows.From, cols.From, got, err, all[at:at+size])
				}
			}
		}
	}
}

func TestSeedsAndOperationsDiffer(t *testing.T) {
	make := func(text string, seed uint64) []byte {
		b, err := MustParse(text).Generate(t.Context(), Spec{weights.F32, 16, 16, seed}, 1)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if bytes.Equal(make("normal(0,1)", 1), make("normal(0,1)", 2)) {
		t.Error("two seeds give the same bytes")
	}
	if bytes.Equal(make("zeros | random(low=8)", 1), make("zeros | abs | random(low=8)", 1)) {
		t.Error("the second step rolls the dice of the third")
	}
	if first, both := make("normal(0,1)", 1), make("normal(0,1) | random(low=8)", 1); bytes.Equal(first, both) || first[3] != both[3] {
		t.Error("a step changes the random numbers of its source")
	}
}

func TestRefusals(t *testing.T) {
	p := MustParse("normal(0,1)")
	for what, s := range map[string]Spec{
		"type without a format": {weights.U8, 1, 1, 0},
		"no type":               {0, 1, 1, 0},
		"negative rows":         {weights.F32, -1, 1, 0},
		"negative columns":      {weights.F32, 1, -1, 0},
		"too many":              {weights.F32, 1 << 40, 1 << 40, 0},
		"overflow":              {weights.F32, math.MaxInt, math.MaxInt, 0},
	} {
		if _, err := p.Generate(t.Context(), s, 1); err == nil {
			t.Errorf("%s was made", what)
		}
	}
	s := Spec{weights.F32, 4, 4, 0}
	for _, block := range [][2]Range{{{-1, 2}, {0, 4}}, {{0, 5}, {0, 4}}, {{3, 2}, {0, 4}}, {{0, 4}, {0, 5}}, {{0, 4}, {2, 1}}} {
		if _, err := p.Block(t.Context(), s, block[0], block[1]); err == nil {
			t.Errorf("made rows %v, columns %v of 4 × 4", block[0], block[1])
		}
	}
	if _, err := (Pattern{}).Generate(t.Context(), s, 1); err == nil {
		t.Error("the zero pattern was made")
	}
	for _, text := range []string{"zeros | zero(low=9)", "zeros | random(high=9)"} {
		if _, err := MustParse(text).Generate(t.Context(), Spec{weights.I8, 1, 1, 0}, 1); err == nil {
			t.Errorf("%s was made of 8 bits", text)
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, o := range operations {
		if o.Name == "tensor" {
			continue
		}
		for _, d := range []weights.DType{weights.F32, weights.I8} {
			if b, err := MustParse(o.Example).Generate(ctx, Spec{d, 300, 300, 1}, 2); b != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %d bytes, error %v", o.Name, len(b), err)
			}
		}
	}
}

// askedTimes is a context that is cancelled after a number of calls of Err.
type askedTimes struct {
	context.Context
	left int
}

func (a *askedTimes) Err() error {
	if a.left--; a.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestSortsStop: sorting stops at any check of the context.
func TestSortsStop(t *testing.T) {
	for _, d := range []weights.DType{weights.F32, weights.BF16} {
		f, _ := d.Format()
		data, err := MustParse("normal(0,1)").Generate(t.Context(), Spec{d, 2, 100_000, 1}, 1)
		if err != nil {
			t.Fatal(err)
		}
		stopped := 0
		for ; ; stopped++ {
			ctx := &askedTimes{t.Context(), stopped}
			if sortLowest(ctx, f, bytes.Clone(data), 150_000) == nil {
				break
			}
			if ctx.left < -2 {
				t.Fatalf("%s: went on to ask %d times", d, -ctx.left)
			}
		}
		if pieces := 200_000/piece + 1; stopped < 3*pieces-1 {
			t.Errorf("%s: asked %d times, less than once a piece of each of its passes", d, stopped)
		}
	}
}
