package transform_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/evaluate"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// TestZeroFile: a token file without tokens is an ErrNoTokens, also for a caller of tokens or evaluate, and the message
// says how to get one.
func TestZeroFile(t *testing.T) {
	m := testmodel.Random(t, "llama-tiny", 1)
	for _, file := range []*tokens.File{nil, {}} {
		_, err := transform.NewTokens(m, file, nil, nil, 0)
		if !errors.Is(err, transform.ErrNoTokens) || !errors.Is(err, tokens.ErrNone) || !errors.Is(err, evaluate.ErrNoTokens) {
			t.Errorf("%v: %v", file, err)
		}
		testmodel.WantError(t, err, "give tokens")
	}
	_, err := (&tokens.File{}).Set(tokens.Evaluation)
	testmodel.WantError(t, err, "the token file has no tokens: read a file with tokens.Open")
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err = tokens.Open(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	testmodel.WantError(t, err, missing, "there is no such file: give a safetensors file with the integer tensors calibration and evaluation of shape [sequences, length]")
}

// TestZeroRecipe: a recipe without passes is an error that says so.
func TestZeroRecipe(t *testing.T) {
	_, err := transform.Recipe{}.Options(testmodel.Random(t, "llama-tiny", 1), nil, cost.Workload{})
	testmodel.WantError(t, err, "the recipe names no passes: set its field Passes, or get a recipe from FindRecipe")
}

// TestZeroTokens: the zero Tokens are an error of each call, and no panic.
func TestZeroTokens(t *testing.T) {
	m := testmodel.Random(t, "llama-tiny", 1)
	zero := &transform.Tokens{}
	if _, err := zero.Compare(t.Context(), m, nil); !errors.Is(err, transform.ErrNoTokens) {
		t.Errorf("Compare: %v", err)
	}
	_, err := transform.Convert(t.Context(), m, filepath.Join(t.TempDir(), "out"), transform.ConvertOptions{Options: transform.Options{Tokens: zero, Cost: testmodel.TogglesCost{}}})
	if !errors.Is(err, transform.ErrNoTokens) {
		t.Errorf("Convert: %v", err)
	}
}
