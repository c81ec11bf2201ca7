package hessian_test

import (
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/hessian"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

func TestKeyTellsModelsAndTokensApart(t *testing.T) {
	set := func(sequences ...[]int32) tokens.Set {
		return tokens.Set{Part: tokens.Part{N: len(sequences), T: len(sequences[0]), Sequences: sequences}}
	}
	one, other := set([]int32{1, 2}, []int32{3, 4}), set([]int32{1, 2}, []int32{3, 5})
	seen := map[string]string{}
	for what, key := range map[string]string{
		"all":              hessian.Key("f", []byte("{}"), nil, one, other),
		"another model":    hessian.Key("g", []byte("{}"), nil, one, other),
		"another config":   hessian.Key("f", []byte("{ }"), nil, one, other),
		"a family":         hessian.Key("f", []byte("{}"), []byte("x"), one, other),
		"parts exchanged":  hessian.Key("f", []byte("{}"), nil, other, one),
		"one part":         hessian.Key("f", []byte("{}"), nil, one),
		"other sequences":  hessian.Key("f", []byte("{}"), nil, one, set([]int32{1, 2, 3, 5})),
		"no part":          hessian.Key("f", []byte("{}"), nil),
		"other boundaries": hessian.Key("f", []byte("{}"), nil, set([]int32{1, 2, 3, 4}), other),
	} {
		if twin, taken := seen[key]; taken {
			t.Errorf("%s and %s have the same key", what, twin)
		}
		seen[key] = what
	}
	// Folders of statistics and plans that exist carry keys of this form.
	if got, want := hessian.Key("f", []byte("{}"), nil, one), "025743040ca339ba2291c23a45f2d5d8f41a94801ad2d4d735f330f39a1c6011"; got != want {
		t.Errorf("key %s, want %s", got, want)
	}
}
