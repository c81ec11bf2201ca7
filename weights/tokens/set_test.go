package tokens_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

func TestSet(t *testing.T) {
	part := func(name string, n int) tokens.Part {
		return tokens.Part{Name: name, N: n, T: 8, Sequences: make([][]int32, n)}
	}
	both := &tokens.File{Path: "f", Parts: []tokens.Part{part("eval", 3), part("train", 2)}}
	for purpose, n := range map[string]int{tokens.Evaluation: 3, tokens.Calibration: 2} {
		s, err := both.Set(purpose)
		if err != nil || s.N != n || s.Purpose != purpose || s.Predicted() != 7*n || s.File != "f" || s.Split == "" {
			t.Errorf("%s: %+v, %v", purpose, s, err)
		}
	}
	one := &tokens.File{Path: "f", Parts: both.Parts[:1]}
	if _, err := one.Set(tokens.Calibration); err == nil || !strings.HasSuffix(err.Error(), `: name a tensor "calibration"`) {
		t.Errorf("a part that is missing: %v", err)
	}
}

func TestSetErrorSaysWhichTokens(t *testing.T) {
	s, cause := tokens.Set{Purpose: tokens.Evaluation, File: "f"}, errors.New("too long")
	if err := s.Error(cause); !errors.Is(err, cause) || err.Error() != "on the evaluation tokens of f: too long" {
		t.Errorf("%v", err)
	}
	if err := s.Error(nil); err != nil {
		t.Errorf("no error became %v", err)
	}
}

func TestHoldBack(t *testing.T) {
	for n, held := range map[int]int{4: 1, 5: 2, 8: 2, 9: 3, 48: 12} {
		s := tokens.Set{Part: tokens.Part{N: n, T: 2}, Purpose: tokens.Calibration}
		for i := range n {
			s.Sequences = append(s.Sequences, []int32{int32(i), 0})
		}
		a, b, err := s.HoldBack()
		if err != nil || a.N != n-held || b.N != held || len(a.Sequences) != a.N || len(b.Sequences) != b.N {
			t.Errorf("%d sequences: %d and %d, %v", n, a.N, b.N, err)
		}
		for i, s := range append(slices.Clone(a.Sequences), b.Sequences...) {
			if s[0] != int32(i) {
				t.Errorf("%d sequences: sequence %d is in place %d", n, s[0], i)
			}
		}
	}
	for n, want := range map[int]string{1: "1 sequence of 7", 3: "3 sequences of 7"} {
		_, _, err := tokens.Set{Part: tokens.Part{N: n, T: 7}, Purpose: tokens.Calibration, File: "f"}.HoldBack()
		if err == nil || !strings.Contains(err.Error(), "f: part calibration: "+want+" tokens: too few") {
			t.Errorf("%d sequences: %v", n, err)
		}
	}
}

func TestFirst(t *testing.T) {
	p := tokens.Part{Name: "evaluation", N: 3, T: 2, Sequences: [][]int32{{1, 2}, {3, 4}, {5, 6}}}
	for n, want := range map[int]int{-1: 0, 0: 0, 2: 2, 3: 3, 9: 3} {
		if f := p.First(n); f.N != want || len(f.Sequences) != want || f.T != 2 {
			t.Errorf("first %d: %d sequences, want %d", n, f.N, want)
		}
	}
}
