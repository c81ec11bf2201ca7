package transform_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform"
)

// FuzzRecipe: a recipe file is an error, or has passes that are known or an error.
func FuzzRecipe(f *testing.F) {
	f.Add([]byte(`{"passes": "grid,round", "min_snr_db": 31}`))
	f.Add([]byte(`{"passes": "round=4", "with_tokens": "trellis", "in_decode": "shift"}`))
	f.Add([]byte("passes: grid,round\nmin_snr_db: 31\n"))
	f.Add([]byte("a: &a [*a, *a]\npasses: *a\n"))
	path := filepath.Join(f.TempDir(), "recipe.json")
	f.Fuzz(func(t *testing.T, data []byte) {
		testmodel.OK(t, os.WriteFile(path, data, 0o666))
		r, err := transform.FindRecipe(path)
		if err != nil {
			return
		}
		if r.Passes == "" {
			t.Error("a recipe without passes")
		}
		_, _ = transform.ParsePasses(r.Passes)
	})
}
