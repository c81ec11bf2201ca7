package verify

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestDigestOfAFileCutShort: a mapped file whose end is gone is an error. The digest that was begun is not asked for.
func TestDigestOfAFileCutShort(t *testing.T) {
	const size = 1<<20 + 1
	head, _, err := weights.EncodeHeader([]weights.Info{{Name: "a", DType: weights.U8, Shape: []int{size}}}, nil)
	testmodel.OK(t, err)
	path := filepath.Join(t.TempDir(), "m.safetensors")
	testmodel.OK(t, os.WriteFile(path, append(head, make([]byte, size)...), 0o666))
	f, err := weights.OpenFile(path)
	testmodel.OK(t, err)
	defer f.Close()
	testmodel.OK(t, os.Truncate(path, int64(len(head))))
	if sum, err := digest(t.Context(), f); !errors.Is(err, weights.ErrFault) || sum != "" {
		t.Errorf("digest %q, error %v, want %v", sum, err, weights.ErrFault)
	}
}
