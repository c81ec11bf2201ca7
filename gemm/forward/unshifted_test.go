package forward_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// TestUnshifted: from each output its own, whichever way the weights lie.
func TestUnshifted(t *testing.T) {
	for axis, shifts := range [][]float32{{10, 20}, {10, 20, 40}} {
		m := modelOf(t, map[string][]float32{"w": {1, 2, 3, 4, 5, 6}, "w.lowtoggle_shift": shifts, "b": {7}})
		layout := &arch.Layout{Claims: map[string]*arch.Claim{"w": {OutAxis: axis}}}
		w := forward.Unshifted(m, layout)
		want := [][]float32{{-9, -8, -7, -16, -15, -14}, {-9, -18, -37, -6, -15, -34}}[axis]
		if have, err := w.Tensor(t.Context(), "w"); err != nil || !slices.Equal(have, want) {
			t.Errorf("outputs along axis %d: %v, %v, want %v", axis, have, err, want)
		}
		if have, err := w.Tensor(t.Context(), "b"); err != nil || !slices.Equal(have, []float32{7}) {
			t.Errorf("no shift: %v, %v", have, err)
		}
	}
	m := modelOf(t, map[string][]float32{"w": {1, 2, 3}, "w.lowtoggle_shift": {1, 2}})
	if _, err := forward.Unshifted(m, nil).Tensor(t.Context(), "w"); err == nil || !strings.Contains(err.Error(), "its 2 shifts do not fit the 3 weights") {
		t.Errorf("two shifts for three weights: %v", err)
	}
}

// modelOf returns a model of vectors.
func modelOf(t *testing.T, tensors map[string][]float32) *weights.Model {
	t.Helper()
	var infos []weights.Info
	var data []byte
	f, _ := weights.F32.Format()
	for name, v := range tensors {
		infos = append(infos, weights.Info{Name: name, DType: weights.F32, Shape: []int{len(v)}})
		b := make([]byte, 4*len(v))
		f.Encode(b, v)
		data = append(data, b...)
	}
	head, _, err := weights.EncodeHeader(infos, nil)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := os.WriteFile(path, append(head, data...), 0o666); err != nil {
		t.Fatal(err)
	}
	m, err := weights.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}
