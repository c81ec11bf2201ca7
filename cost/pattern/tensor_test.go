package pattern

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// stored writes values as a tensor x of rows × cols, and returns the tensor's pattern.
func stored(t testing.TB, d weights.DType, values []float64, rows, cols int) string {
	t.Helper()
	head, _, err := weights.EncodeHeader([]weights.Info{{Name: "x", DType: d, Shape: []int{rows, cols}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, len(values)*d.Bits()/8)
	if f, ok := d.Format(); ok {
		for i, v := range values {
			f.SetElem(data, i, f.FromValue(float32(v)))
		}
	}
	path := filepath.Join(t.TempDir(), "a (b), c.safetensors")
	if err := os.WriteFile(path, append(head, data...), 0o644); err != nil {
		t.Fatal(err)
	}
	return "tensor(" + path + ":x)"
}

// stepped returns the values after steps.
func stepped(t testing.TB, source []float64, rows, cols int, steps string) []float64 {
	t.Helper()
	text := stored(t, weights.F32, source, rows, cols) + "|" + steps
	if strings.HasSuffix(steps, "transpose") {
		rows, cols = cols, rows
	}
	return values(t, text, Spec{weights.F32, rows, cols, 1})
}

func TestTensor(t *testing.T) {
	v := make([]float64, 6*9)
	for i := range v {
		v[i] = float64(i) * 1.01
	}
	for _, from := range types {
		p := MustParse(stored(t, from, v, 6, 9))
		source, _ := from.Format()
		for _, to := range types {
			f, _ := to.Format()
			got, err := p.Generate(t.Context(), Spec{to, 6, 9, 0}, 3)
			if err != nil {
				t.Fatal(err)
			}
			for i := range v {
				if want := f.FromValue(source.Value(source.FromValue(float32(v[i])))); f.Elem(got, i) != want {
					t.Fatalf("%s to %s: element %d is %#x, want %#x", from, to, i, f.Elem(got, i), want)
				}
			}
			turned, err := MustParse(p.String()+"|transpose").Block(t.Context(), Spec{to, 9, 6, 0}, Range{4, 5}, Range{2, 3})
			if size := f.Bits / 8; err != nil || !bytes.Equal(turned, got[(2*9+4)*size:][:size]) {
				t.Errorf("%s to %s: element 4, 2 of the transpose is %x (%v)", from, to, turned, err)
			}
		}
	}
}

func TestTensorErrors(t *testing.T) {
	good := stored(t, weights.BF16, make([]float64, 6), 2, 3)
	for text, want := range map[string]string{
		"tensor(nowhere.safetensors:x)":                             "nowhere.safetensors",
		strings.Replace(good, ":x)", ":y)", 1):                      "no tensor y; it has x",
		good + "|transpose":                                         "2 × 3",
		stored(t, weights.U8, make([]float64, 6), 2, 3):             "U8",
		stored(t, weights.BF16, make([]float64, 6), 3, 2) + "| abs": "3 × 2",
	} {
		_, err := MustParse(text).Generate(t.Context(), Spec{weights.BF16, 2, 3, 0}, 1)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want something about %s", text, err, want)
		}
	}
}

// TestStoredSpecialValues: arithmetic does not change values that are not finite; steps on bits do.
func TestStoredSpecialValues(t *testing.T) {
	f, _ := weights.BF16.Format()
	special := []uint32{0x7F80, 0xFF80, 0x7FC1, 0xFFFF}
	dir := t.TempDir()
	head, _, err := weights.EncodeHeader([]weights.Info{{Name: "x", DType: weights.BF16, Shape: []int{4, 1}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 8)
	for i, b := range special {
		f.SetElem(data, i, b)
	}
	path := filepath.Join(dir, "m.safetensors")
	if err := os.WriteFile(path, append(head, data...), 0o644); err != nil {
		t.Fatal(err)
	}
	for step, changed := range map[string]bool{
		"shift(1)": false, "scale(2)": false, "abs": false, "clip(1)": false, "quantize(1)": false, "round(4)": false, "grid(4)": false,
		"flip(0)": true, "random(low=0)": true,
	} {
		got, err := MustParse("tensor("+path+":x) |"+step).Generate(t.Context(), Spec{weights.BF16, 4, 1, 0}, 1)
		if err != nil {
			t.Fatal(err)
		}
		for i, b := range special {
			if changed {
				b &^= 0x80
			}
			if f.Elem(got, i) != b {
				t.Errorf("%s: %#x became %#x, want %#x", step, special[i], f.Elem(got, i), b)
			}
		}
	}
}
