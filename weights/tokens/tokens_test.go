package tokens_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/demo"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// tensor is one of a token file, its values not yet encoded.
type tensor struct {
	name   string
	dtype  weights.DType
	shape  []int
	values []int64
}

// write makes a safetensors file.
func write(t testing.TB, tensors ...tensor) (path string) {
	t.Helper()
	var infos []weights.Info
	var data []byte
	for _, x := range tensors {
		infos = append(infos, weights.Info{Name: x.name, DType: x.dtype, Shape: x.shape})
		for _, v := range x.values {
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], uint64(v))
			data = append(data, b[:x.dtype.Bits()/8]...)
		}
	}
	head, _, err := weights.EncodeHeader(infos, nil)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "tokens.safetensors")
	if err := os.WriteFile(path, append(head, data...), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t testing.TB, tensors ...tensor) *tokens.File {
	t.Helper()
	f, err := tokens.Open(write(t, tensors...))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestEveryIntegerType(t *testing.T) {
	for dtype, largest := range map[weights.DType]int64{
		weights.U8: 255, weights.I8: 127, weights.U16: 65535, weights.I16: 32767,
		weights.U32: 2147483647, weights.I32: 2147483647, weights.U64: 2147483647, weights.I64: 2147483647,
	} {
		f := open(t, tensor{"x", dtype, []int{2, 3}, []int64{0, 1, 2, largest, 100, 3}})
		want := []tokens.Part{{Name: "x", N: 2, T: 3, Sequences: [][]int32{{0, 1, 2}, {int32(largest), 100, 3}}}}
		if diff := cmp.Diff(want, f.Parts); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", dtype, diff)
		}
	}
}

func TestVectorIsOneSequence(t *testing.T) {
	f := open(t, tensor{"x", weights.U16, []int{3}, []int64{7, 300, 2}})
	if diff := cmp.Diff([]tokens.Part{{Name: "x", N: 1, T: 3, Sequences: [][]int32{{7, 300, 2}}}}, f.Parts); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestErrors(t *testing.T) {
	for _, test := range []struct {
		tensors []tensor
		want    string
	}{
		{nil, "has no tensors"},
		{[]tensor{{"x", weights.I32, []int{2, 2}, []int64{1, 2, 3, -1}}}, `tensor "x": sequence 1, position 1: is not a token`},
		{[]tensor{{"x", weights.I8, []int{2, 2}, []int64{1, 2, -128, 1}}}, "sequence 1, position 0"},
		{[]tensor{{"x", weights.I16, []int{1, 2}, []int64{-2, 2}}}, "sequence 0, position 0"},
		{[]tensor{{"x", weights.I64, []int{1, 2}, []int64{0, -1}}}, "sequence 0, position 1"},
		{[]tensor{{"x", weights.I64, []int{1, 2}, []int64{0, 1 << 31}}}, "sequence 0, position 1"},
		{[]tensor{{"x", weights.U64, []int{1, 2}, []int64{-1, 1}}}, "sequence 0, position 0"},
		{[]tensor{{"x", weights.U32, []int{1, 2}, []int64{1 << 31, 1}}}, "sequence 0, position 0"},
		{[]tensor{{"x", weights.F32, []int{1, 2}, []int64{0, 0}}}, `tensor "x": is of type F32, as in a file of weights`},
		{[]tensor{{"x", weights.Bool, []int{1, 2}, []int64{0, 0}}}, "is of type BOOL"},
		{[]tensor{{"x", weights.U8, []int{1, 1, 2}, []int64{0, 0}}}, "has shape [1 1 2]"},
		{[]tensor{{"x", weights.U8, nil, []int64{0}}}, "has shape []"},
		{[]tensor{{"x", weights.U8, []int{0, 1 << 60}, nil}}, "has no sequences"},
		{[]tensor{{"x", weights.U8, []int{1 << 60, 0}, nil}}, "has sequences of length 0"},
		{[]tensor{{"x", weights.U8, []int{0}, nil}}, "has sequences of length 0"},
		{[]tensor{{"x", weights.U8, []int{3, 1}, []int64{1, 2, 3}}}, "has sequences of length 1: store sequences of at least two"},
	} {
		path := write(t, test.tensors...)
		_, err := tokens.Open(path)
		if _, ok := errors.AsType[*weights.FormatError](err); !ok || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("error %v, want a format error with %q that names the file", err, test.want)
		}
	}
	if _, err := tokens.Open(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want one that says the file is not there", err)
	}
}

func TestSplit(t *testing.T) {
	x := func(name string, sequences int) tensor {
		values := make([]int64, sequences*4)
		for i := range values {
			values[i] = int64(i)
		}
		return tensor{name, weights.U8, []int{sequences, 4}, values}
	}
	for _, test := range []struct {
		tensors                 []tensor
		calibration, evaluation string // name, and the first token of each sequence
		how                     string
	}{
		{[]tensor{x("calibration", 2), x("evaluation", 1)}, "calibration 0 4", "evaluation 0",
			`a conversion chooses its changes with "calibration" (2 sequences of 4 tokens); "evaluation" (1 sequence of 4 tokens) is for tests of the result`},
		{[]tensor{x("held_out", 1), x("TRAIN", 1)}, "TRAIN 0", "held_out 0", `"TRAIN" (1 sequence`},
		{[]tensor{x("search", 1), x("judge", 1), x("mask", 1)}, "search 0", "judge 0", `not used, because a name gives no purpose or both purposes: "mask"`},
		{[]tensor{x("my.validation", 2)}, "", "my.validation 0 4", "no tokens are named for calibration"},
		{[]tensor{x("test", 2), x("mask", 2)}, "", "test 0 4", "no tokens are named for calibration"},
		{[]tensor{x("train", 2)}, "train 0 4", "", "no tokens are named for evaluation"},
		{[]tensor{x("input_ids", 5)}, "input_ids 0 4", "input_ids 8 12 16", `the first 2 of the 5 sequences of "input_ids" are for calibration, the others for evaluation`},
		{[]tensor{x("train_or_test", 2)}, "train_or_test 0", "train_or_test 4", `the first of the 2 sequences of "train_or_test" is for calibration`},
		{[]tensor{x("input_ids", 1)}, "input_ids 0", "input_ids 2", `the first 2 of the 4 tokens of "input_ids" are for calibration, the others for evaluation`},
	} {
		calibration, evaluation, how, err := open(t, test.tensors...).Split()
		if err != nil {
			t.Errorf("%v: %v", test.tensors, err)
		}
		if got := outline(t, calibration); got != test.calibration {
			t.Errorf("calibration is %q, want %q", got, test.calibration)
		}
		if got := outline(t, evaluation); got != test.evaluation {
			t.Errorf("evaluation is %q, want %q", got, test.evaluation)
		}
		if !strings.Contains(how, test.how) {
			t.Errorf("it says %q, want something with %q", how, test.how)
		}
	}
}

// outline returns a part's name and the first token of each sequence; it checks the numbers.
func outline(t *testing.T, p tokens.Part) string {
	t.Helper()
	if len(p.Sequences) != p.N {
		t.Errorf("%s: %d sequences, N is %d", p.Name, len(p.Sequences), p.N)
	}
	s := p.Name
	for _, sequence := range p.Sequences {
		if len(sequence) != p.T {
			t.Errorf("%s: a sequence of %d tokens, T is %d", p.Name, len(sequence), p.T)
		}
		for i, token := range sequence {
			if token != sequence[0]+int32(i) {
				t.Errorf("%s: sequence %v does not count up", p.Name, sequence)
			}
		}
		s += fmt.Sprintf(" %d", sequence[0])
	}
	return s
}

func TestSplitThatIsNotClear(t *testing.T) {
	two := func(name string) tensor { return tensor{name, weights.U8, []int{1, 2}, []int64{1, 2}} }
	for _, test := range []struct {
		tensors []tensor
		want    string
	}{
		{[]tensor{two("a"), two("b")}, `the names of the tensors "a", "b" must give one tensor for calibration and one for evaluation: name one tensor "calibration" and one "evaluation"`},
		{[]tensor{two("train"), two("calibration"), two("test")}, "must give one tensor for calibration"},
		{[]tensor{two("train"), two("validation"), two("test")}, "must give one tensor for calibration"},
		{[]tensor{two("a")}, `tensor "a" has 2 tokens: give at least four`},
	} {
		f := open(t, test.tensors...)
		_, _, _, err := f.Split()
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), f.Path) {
			t.Errorf("error %v, want one with %q that names the file", err, test.want)
		}
	}
}

func TestDemo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	if err := demo.Write(dir); err != nil {
		t.Fatal(err)
	}
	f, err := tokens.Open(tokens.Path(dir))
	if err != nil {
		t.Fatal(err)
	}
	calibration, evaluation, _, err := f.Split()
	if err != nil || calibration.Name != "calibration" || evaluation.Name != "evaluation" || calibration.N*evaluation.N == 0 {
		t.Errorf("calibration %v, evaluation %v, %v", calibration, evaluation, err)
	}
}

// FuzzOpen: for any bytes, Open returns an error or valid parts.
func FuzzOpen(f *testing.F) {
	for _, tensors := range [][]tensor{
		{{"calibration", weights.U8, []int{2, 2}, []int64{1, 2, 3, 4}}, {"evaluation", weights.I64, []int{2}, []int64{1, 2}}},
		{{"x", weights.I16, []int{1, 4}, []int64{1, 2, 3, -4}}},
	} {
		data, err := os.ReadFile(write(f, tensors...))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	path := filepath.Join(f.TempDir(), "tokens.safetensors")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		file, err := tokens.Open(path)
		if err != nil {
			return
		}
		for _, p := range file.Parts {
			if p.N < 1 || p.T < 2 || len(p.Sequences) != p.N {
				t.Fatalf("%d sequences in a part of %d × %d", len(p.Sequences), p.N, p.T)
			}
			for _, s := range p.Sequences {
				if len(s) != p.T {
					t.Fatalf("a sequence of %d tokens, not %d", len(s), p.T)
				}
				for _, token := range s {
					if token < 0 {
						t.Fatalf("token %d", token)
					}
				}
			}
		}
		calibration, evaluation, how, err := file.Split()
		if err == nil && (calibration.N+evaluation.N == 0 || how == "") {
			t.Fatalf("a split into nothing: %q", how)
		}
	})
}
