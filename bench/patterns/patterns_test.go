package main

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/weights"
)

// The shape has cut-off blocks at both edges, and runs of 4 rows that are cut off too.
const testRows, testCols = 203, 387

// written is a file of all patterns.
func written(t *testing.T, seed uint64) *weights.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "patterns.safetensors")
	if err := write(t.Context(), path, testRows, testCols, seed); err != nil {
		t.Fatal(err)
	}
	f, err := weights.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// values decodes a tensor; element r, c is at r*testCols + c.
func values(t *testing.T, f *weights.File, name string) []float64 {
	t.Helper()
	tensor, ok := f.Tensor(name)
	if !ok {
		t.Fatalf("no tensor %q", name)
	}
	v := make([]float64, tensor.Len())
	for i := range v {
		v[i] = float64(bf16.Value(bf16.Elem(tensor.Data, i)))
	}
	return v
}

func TestFile(t *testing.T) {
	var names []string
	for _, tensor := range written(t, 1).Tensors {
		names = append(names, tensor.Name)
		if tensor.DType != weights.BF16 || !cmp.Equal(tensor.Shape, []int{testRows, testCols}) {
			t.Errorf("%s: %s%v", tensor.Name, tensor.DType, tensor.Shape)
		}
	}
	want := strings.Fields(`random zeros constant rows-identical rows-in-runs-of-4 low-4-zeroed low-7-zeroed
		half-zeroed half-zeroed-64x64 levels-4 shifted-8-sigma one-magnitude absolute`)
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

func TestRandom(t *testing.T) {
	w := values(t, written(t, 1), "random")
	mean, sd := moments(w)
	if n := math.Sqrt(float64(len(w))); math.Abs(mean) > 4*0.02/n || math.Abs(sd-0.02) > 4*0.02/n {
		t.Errorf("mean %g, standard deviation %g", mean, sd)
	}
}

// TestElements holds what each pattern makes of every element w of the base against its
// definition; bits are compared, as two zeros are not one to a wire.
func TestElements(t *testing.T) {
	const s = 0.02001953125 // 0.02 in BF16
	truncated := func(w float64, bits int) float64 {
		fraction, exp := math.Frexp(w) // the mantissa with its leading one is 8 bits
		return math.Ldexp(math.Trunc(math.Ldexp(fraction, 8-bits)), exp-8+bits)
	}
	nearest := func(v float64) float64 { return float64(bf16.Value(bf16.FromValue(float32(v)))) }
	definitions := map[string]func(w float64, base []float64, r, c int) float64{
		"zeros":             func(float64, []float64, int, int) float64 { return 0 },
		"constant":          func(float64, []float64, int, int) float64 { return s },
		"rows-identical":    func(_ float64, base []float64, _, c int) float64 { return base[c] },
		"rows-in-runs-of-4": func(_ float64, base []float64, r, c int) float64 { return base[r/4*4*testCols+c] },
		"low-4-zeroed":      func(w float64, _ []float64, _, _ int) float64 { return truncated(w, 4) },
		"low-7-zeroed":      func(w float64, _ []float64, _, _ int) float64 { return truncated(w, 7) },
		"levels-4":          func(w float64, _ []float64, _, _ int) float64 { return math.RoundToEven(w*64)/64 + 0 },
		"shifted-8-sigma":   func(w float64, _ []float64, _, _ int) float64 { return nearest(w + 0.16) },
		"one-magnitude":     func(w float64, _ []float64, _, _ int) float64 { return math.Copysign(s, w) },
		"absolute":          func(w float64, _ []float64, _, _ int) float64 { return math.Abs(w) },
	}
	f := written(t, 1)
	base := values(t, f, "random")
	for name, define := range definitions {
		for i, have := range values(t, f, name) {
			r, c := i/testCols, i%testCols
			if want := define(base[i], base, r, c); math.Float64bits(have) != math.Float64bits(want) {
				t.Errorf("%s: %g at %d, %d became %g, not %g", name, base[i], r, c, have, want)
				break
			}
		}
	}
}

func TestLevels(t *testing.T) {
	beyond := 0
	v := values(t, written(t, 1), "levels-4")
	for _, v := range v {
		if math.Abs(v) > 4*step {
			beyond++
		}
	}
	if most := len(v) / 1000; beyond == 0 || beyond > most {
		t.Errorf("%d of %d values lie beyond ±4 steps: expected a few, at most %d", beyond, len(v), most)
	}
}

// TestHalfZeroed checks that whole blocks are zero or untouched, that about half are zero, that
// neither neighbouring blocks agree more often than chance nor zeros prefer a kind of value.
func TestHalfZeroed(t *testing.T) {
	f := written(t, 1)
	base := values(t, f, "random")
	for name, size := range map[string]int{"half-zeroed": 1, "half-zeroed-64x64": 64} {
		v := values(t, f, name)
		zeroAt := func(r, c int) bool { return math.Float64bits(v[r*testCols+c]) == 0 }
		var gone []float64
		for i := range v {
			r, c := i/testCols, i%testCols
			zero := zeroAt(r, c)
			if zero != zeroAt(r/size*size, c/size*size) || !zero && v[i] != base[i] {
				t.Fatalf("%s: %g at %d, %d became %g", name, base[i], r, c, v[i])
			}
			if zero {
				gone = append(gone, base[i])
			}
		}
		var blocks, zeros, pairs, alike float64
		for r := 0; r < testRows; r += size {
			for c := 0; c < testCols; c += size {
				blocks++
				if zeroAt(r, c) {
					zeros++
				}
				if r >= size {
					pairs++
					if zeroAt(r, c) == zeroAt(r-size, c) {
						alike++
					}
				}
				if c >= size {
					pairs++
					if zeroAt(r, c) == zeroAt(r, c-size) {
						alike++
					}
				}
			}
		}
		if math.Abs(zeros-blocks/2) > 2*math.Sqrt(blocks) {
			t.Errorf("%s: %v of %v blocks are zero", name, zeros, blocks)
		}
		if math.Abs(alike-pairs/2) > 2*math.Sqrt(pairs) {
			t.Errorf("%s: %v of %v neighbouring blocks are alike", name, alike, pairs)
		}
		mean, sd := moments(gone)
		if n := math.Sqrt(float64(len(gone))); math.Abs(mean) > 4*0.02/n || math.Abs(sd-0.02) > 4*0.02/n {
			t.Errorf("%s: what was zeroed has mean %g, standard deviation %g", name, mean, sd)
		}
	}
}

// TestSame holds a file against its twin, written by one worker, and against that of another seed.
func TestSame(t *testing.T) {
	a, other := written(t, 7), written(t, 8)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	b := written(t, 7)
	if !bytes.Equal(a.Data(), b.Data()) {
		t.Error("one worker wrote another file")
	}
	for _, name := range []string{"random", "half-zeroed", "half-zeroed-64x64"} {
		if cmp.Equal(values(t, a, name), values(t, other, name)) {
			t.Errorf("%s does not depend on the seed", name)
		}
	}
}

func TestExistingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(path, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := write(t.Context(), path, 2, 2, 0)
	if err == nil || !strings.Contains(err.Error(), "remove it or name another") {
		t.Errorf("error %v", err)
	}
	if text, _ := os.ReadFile(path); string(text) != "text" {
		t.Errorf("the file now holds %q", text)
	}
}

func TestInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "patterns.safetensors")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := write(ctx, path, 2, 2, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an unfinished file is left: %v", err)
	}
}

func moments(v []float64) (mean, sd float64) {
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		sd += (x - mean) * (x - mean) / float64(len(v))
	}
	return mean, math.Sqrt(sd)
}
