package sgemm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSlice(t *testing.T) {
	m := Dense(3, 4, []float32{
		0, 1, 2, 3,
		4, 5, 6, 7,
		8, 9, 10, 11,
	})
	s := m.Slice(1, 3, 1, 3)
	if s.Rows != 2 || s.Cols != 2 {
		t.Errorf("shape %dx%d, want 2x2", s.Rows, s.Cols)
	}
	for i, want := range [][]float32{{5, 6}, {9, 10}} {
		if diff := cmp.Diff(want, s.Row(i)); diff != "" {
			t.Errorf("row %d (-want +got):\n%s", i, diff)
		}
	}
	if _ = append(s.Row(0), -1); m.Data[7] != 7 {
		t.Error("appending to a row wrote to the next element")
	}
	if s.Row(1)[0] = -1; m.Data[9] != -1 {
		t.Error("a slice does not share memory")
	}
	for _, empty := range []Matrix{m.Slice(3, 3, 0, 4), m.Slice(0, 3, 4, 4)} {
		empty.check("an empty slice")
		for i := range empty.Rows {
			if len(empty.Row(i)) != 0 {
				t.Errorf("row %d of a matrix without columns has elements", i)
			}
		}
	}
}

func TestSliceOutside(t *testing.T) {
	// The data would have room for all of these.
	m := Dense(10, 10, nil).Slice(2, 5, 2, 5)
	for _, s := range [][4]int{{-1, 1, 0, 1}, {0, 4, 0, 3}, {0, 3, 0, 4}, {2, 1, 0, 3}, {0, 3, 2, 1}, {0, 3, -1, 1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("no panic for %v", s)
				}
			}()
			m.Slice(s[0], s[1], s[2], s[3])
		}()
	}
}
