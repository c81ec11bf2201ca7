package transform_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform"
)

// TestZeroTokens: the zero Tokens are an error of each call, and no panic.
func TestZeroTokens(t *testing.T) {
	m := testmodel.Random(t, "llama-tiny", 1)
	tokens := &transform.Tokens{}
	if _, err := tokens.Compare(t.Context(), m, nil); !errors.Is(err, transform.ErrNoTokens) {
		t.Errorf("Compare: %v", err)
	}
	_, err := transform.Convert(t.Context(), m, filepath.Join(t.TempDir(), "out"), transform.ConvertOptions{Options: transform.Options{Tokens: tokens, Cost: testmodel.TogglesCost{}}})
	if !errors.Is(err, transform.ErrNoTokens) {
		t.Errorf("Convert: %v", err)
	}
}
