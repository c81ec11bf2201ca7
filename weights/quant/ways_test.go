package quant_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// TestAllWaysToReadAgree: for random layers in every layout, all functions that read values, operands and packed codes agree.
// Pieces have any size and cross experts, and the number of workers varies.
func TestAllWaysToReadAgree(t *testing.T) {
	for name, generate := range layers {
		for seed := range uint64(12) {
			r := draw{rand.New(rand.NewPCG(seed, 2))}
			l := generate(r)
			m := checkpoint(t, l.config, l.tensors...)
			d, err := quant.Describe(m)
			testmodel.OK(t, err)
			checkWays(t, fmt.Sprintf("%s, seed %d, %v", name, seed, l.shape), r, l, d)
		}
	}
}

func checkWays(t *testing.T, name string, r draw, l *layer, d *quant.Description) {
	t.Helper()
	w := d.Weights[0]
	for i, x := range w.Tensors {
		found, ok := d.WeightOf(x.Name)
		if role, _, known := tensorRole(d, x.Name); !ok || found != w || !d.Readable(x.Name) || !d.Holds(x.Name) || !known || role != x.Role || !slices.Contains(w.Files(), x.File) {
			t.Errorf("%s: tensor %d, %s, is not found", name, i, x.Name)
		}
	}
	if _, ok := d.WeightOf("m.absent"); ok || d.Readable("m.absent") || len(w.Files()) != len(w.Tensors) {
		t.Errorf("%s: a tensor that is absent is found, or files are missing: %v", name, w.Files())
	}
	n, k := l.shape[len(l.shape)-2], l.shape[len(l.shape)-1]
	values, err := w.Values(t.Context(), 1)
	testmodel.OK(t, err)
	again, err := w.Values(t.Context(), 3)
	testmodel.OK(t, err)
	for i, v := range values {
		want := l.value(i/(n*k), i/k%n, i%k)
		if math.Float32bits(v) != math.Float32bits(want) && (v == v || want == want) || math.Float32bits(v) != math.Float32bits(again[i]) {
			t.Fatalf("%s: value %d is %v, with three workers %v, want %v", name, i, v, again[i], want)
		}
	}
	var operand, packed []byte
	for e := range w.Experts() {
		m, err := w.Load(e)
		testmodel.OK(t, err)
		operand = append(operand, m.Operand(w.Operand(), 0, m.N)...)
		if len(m.Book.Values) == 16 && k%2 == 0 {
			packed = append(packed, m.Packed(0, m.N)...)
			for i, c := range m.Codes[:min(k, 40)] {
				if packed[e*n*k/2+i/2]>>(i%2*4)&15 != c {
					t.Fatalf("%s: code %d is packed wrongly", name, i)
				}
			}
		}
		fresh, err := w.New(m.N)
		testmodel.OK(t, err)
		if len(fresh.Codes) != len(m.Codes) || len(fresh.Scales) != len(m.Scales) || fresh.Block != m.Block || fresh.K != m.K || len(fresh.Zeros) != len(m.Zeros) ||
			m.Group != nil && fresh.Group == nil || fresh.Global != 1 || fresh.Divide != m.Divide {
			t.Errorf("%s: a new matrix does not fit", name)
		}
	}
	if dequantised := packed != nil && w.Operand() == weights.BF16; w.Dequantised() != dequantised {
		t.Errorf("%s: dequantised %v", name, !dequantised)
	}
	rows, size := w.Experts()*n, len(operand)/(w.Experts()*n)
	for range 4 {
		first := r.IntN(rows)
		count := r.between(1, rows-first)
		have, err := w.OperandRows(first, count)
		testmodel.OK(t, err)
		if !bytes.Equal(have, operand[first*size:(first+count)*size]) {
			t.Fatalf("%s: operands of rows %d to %d", name, first, first+count)
		}
		have, err = w.PackedRows(first, count)
		testmodel.OK(t, err)
		if packed == nil && have != nil || packed != nil && !bytes.Equal(have, packed[first*k/2:(first+count)*k/2]) {
			t.Fatalf("%s: packed codes of rows %d to %d", name, first, first+count)
		}
	}
	if !w.SameBytes(w) {
		t.Errorf("%s: not the same bytes as itself", name)
	}
	other := *w
	other.Tensors = slices.Clone(w.Tensors)
	last := len(other.Tensors) - 1
	other.Tensors[last].Data = bytes.Clone(other.Tensors[last].Data)
	other.Tensors[last].Data[0] ^= 1
	if w.SameBytes(&other) {
		t.Errorf("%s: the same bytes as another", name)
	}
}

func tensorRole(d *quant.Description, name string) (quant.Role, quant.Format, bool) {
	f, role, ok := d.Tensor(name)
	return role, f, ok
}

// TestInputsByGroup: the order has every input once, group by group, and keeps the order within a group.
func TestInputsByGroup(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 30 {
		k, groups := 1+r.IntN(40), 1+r.IntN(5)
		m := quant.Matrix{K: k, Group: make([]int32, k)}
		for i := range m.Group {
			m.Group[i] = int32(r.IntN(groups))
		}
		order := m.InputsByGroup()
		if slices.IsSorted(m.Group) {
			if order != nil {
				t.Errorf("%v is in order, and has the order %v", m.Group, order)
			}
			continue
		}
		for i := 1; i < k; i++ {
			a, b := order[i-1], order[i]
			if m.Group[a] > m.Group[b] || m.Group[a] == m.Group[b] && a >= b {
				t.Fatalf("%v of groups %v", order, m.Group)
			}
		}
		if sorted := slices.Sorted(slices.Values(order)); len(sorted) != k || sorted[0] != 0 || sorted[k-1] != k-1 {
			t.Fatalf("%v has not every input", order)
		}
	}
}
