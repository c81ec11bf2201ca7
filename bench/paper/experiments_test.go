package paper

import (
	"bytes"
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/weights"
)

// rows and cols of the matrices that tests draw: few, and not the same.
const rows, cols = 48, 64

// usedTypes returns the types that some setup measures.
func usedTypes() (list []arith.Type) {
	for _, s := range Setups() {
		if !slices.Contains(list, s.Type) {
			list = append(list, s.Type)
		}
	}
	return list
}

func draw(t *testing.T, p pattern.Pattern, d weights.DType, seed uint64) []byte {
	t.Helper()
	data, err := p.Generate(t.Context(), pattern.Spec{DType: d, Rows: rows, Cols: cols, Seed: seed}, 1)
	if err != nil {
		t.Fatalf("%v in %v: %v", p, d, err)
	}
	return data
}

// values of a matrix, in row-major order.
func values(d weights.DType, data []byte) (list []float64) {
	f, _ := d.Format()
	for i := range rows * cols {
		list = append(list, float64(f.Value(f.Elem(data, i))))
	}
	return list
}

// TestExperiments: axes rise from an end to the other, patterns can be drawn in every type and are
// finite.
func TestExperiments(t *testing.T) {
	for _, typ := range usedTypes() {
		for _, e := range experiments {
			points := e.Points(typ)
			if n := len(points); n < 5 || n > 7 {
				t.Errorf("%s in %v has %d points", e.ID, typ, n)
			}
			for i, at := range points {
				if i > 0 && at.X <= points[i-1].X {
					t.Errorf("%s in %v: %v stands behind %v", e.ID, typ, at.X, points[i-1].X)
				}
				for _, p := range []pattern.Pattern{at.A, at.B} {
					for _, v := range values(typ.Operand(), draw(t, p, typ.Operand(), 1)) {
						if math.IsNaN(v) || math.IsInf(v, 0) {
							t.Fatalf("%s at %v in %v: %v draws %v", e.ID, at.X, typ, p, v)
						}
					}
				}
			}
		}
	}
}

// TestEnds: the axes have the paper's ends.
func TestEnds(t *testing.T) {
	for _, typ := range usedTypes() {
		d := typ.Operand()
		f, _ := d.Format()
		type end struct {
			at   At
			a, b []byte
		}
		first, last := map[string]end{}, map[string]end{}
		for _, e := range experiments {
			points := e.Points(typ)
			p, q := points[0], points[len(points)-1]
			first[e.ID] = end{p, draw(t, p.A, d, 2), draw(t, p.B, d, 3)}
			last[e.ID] = end{q, draw(t, q.A, d, 2), draw(t, q.B, d, 3)}
		}
		usual := pattern.MustParse(usual(typ))
		base := draw(t, usual, d, 2)
		for _, id := range []string{"5a", "5b", "5c", "5d", "6a", "6c", "6d"} {
			if !bytes.Equal(first[id].a, base) {
				t.Errorf("%v: %s does not begin with the baseline", typ, id)
			}
		}
		for id, want := range map[string]float64{"4a": 100, "4b": float64(f.Bits), "4c": float64(f.Bits),
			"5a": 100, "5b": 100, "5c": 100, "5d": 100, "6a": 100, "6b": 100, "6c": float64(f.Bits), "6d": float64(f.Bits)} {
			if first[id].at.X != 0 || last[id].at.X != want {
				t.Errorf("%v: %s goes from %v to %v", typ, id, first[id].at.X, last[id].at.X)
			}
		}
		for _, id := range []string{"6a", "6b", "6c", "6d"} {
			if slices.ContainsFunc(last[id].a, func(b byte) bool { return b != 0 }) {
				t.Errorf("%v: %s does not end with zeros", typ, id)
			}
		}
		for _, id := range []string{"3c", "4a", "4b", "4c"} {
			for _, m := range [][]byte{first[id].a, first[id].b} {
				if one := values(d, m); slices.Min(one) != slices.Max(one) {
					t.Errorf("%v: %s does not begin with one value", typ, id)
				}
			}
			if bytes.Equal(first[id].a, first[id].b) {
				t.Errorf("%v: A and B are the same value in %s", typ, id)
			}
		}
		for _, id := range []string{"4b", "4c"} {
			ones := 0
			for _, b := range last[id].a {
				ones += bits.OnesCount8(b)
			}
			if share := float64(ones) / float64(8*len(base)); math.Abs(share-0.5) > 0.02 {
				t.Errorf("%v: %s ends with %.3f of the bits set", typ, id, share)
			}
		}
		for i, b := range first["4a"].a {
			if flipped := last["4a"].a[i]; flipped != ^b && f.Finite(^f.Elem(first["4a"].a, i/(f.Bits/8))&uint32(1<<f.Bits-1)) {
				t.Errorf("%v: 4a does not end with all bits flipped: %02x of %02x", typ, flipped, b)
				break
			}
		}
		sorted := values(d, base)
		slices.Sort(sorted)
		if a := values(d, last["5a"].a); !slices.Equal(a, sorted) {
			t.Errorf("%v: 5a does not end with sorted values", typ)
		}
		if !bytes.Equal(last["5b"].a, first["6b"].a) {
			t.Errorf("%v: 6b does not begin where 5b ends", typ)
		}
		for r, within := 0, values(d, last["5d"].a); r < rows; r++ {
			if !slices.IsSorted(within[r*cols:][:cols]) {
				t.Errorf("%v: row %d of 5d is not sorted", typ, r)
			}
		}
	}
}

// TestTransposition: B is transposed, and so has K along its rows as A does, but in 5a and 5c.
func TestTransposition(t *testing.T) {
	d, last := arith.BF16.Operand(), map[string]At{}
	for _, e := range experiments {
		points := e.Points(arith.BF16)
		last[e.ID] = points[len(points)-1]
	}
	order := func(p pattern.Pattern) string {
		v := values(d, draw(t, p, d, 2))
		var turned []float64
		for c := range cols {
			for r := range rows {
				turned = append(turned, v[r*cols+c])
			}
		}
		switch {
		case slices.IsSorted(v):
			return "by rows"
		case slices.IsSorted(turned):
			return "by columns"
		}
		return "neither"
	}
	for id, want := range map[string][2]string{
		"5a": {"by rows", "by columns"},
		"5b": {"by rows", "by rows"},
		"5c": {"by columns", "by rows"},
		"5d": {"neither", "neither"},
	} {
		if got := [2]string{order(last[id].A), order(last[id].B)}; got != want {
			t.Errorf("%s: A and B are sorted %q, want %q", id, got, want)
		}
	}
}
