package verify

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestDigestOfAFileCutShort: a mapped file that was truncated is an error. The incomplete digest is not used.
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

// TestUnreadableIsNoDifference: a file that cannot be read is an error, because it is unknown whether it differs.
func TestUnreadableIsNoDifference(t *testing.T) {
	var models [2]*weights.Model
	for i := range models {
		dir := t.TempDir()
		head, _, err := weights.EncodeHeader([]weights.Info{{Name: "a", DType: weights.U8, Shape: []int{1}}}, nil)
		testmodel.OK(t, err)
		testmodel.OK(t, os.WriteFile(filepath.Join(dir, "model.safetensors"), append(head, 0), 0o666))
		extra := filepath.Join(dir, "extra.txt")
		if i == 0 {
			testmodel.OK(t, os.WriteFile(extra, []byte("text"), 0o666))
		} else {
			testmodel.OK(t, os.Symlink("/proc/self/mem", extra)) // nothing is mapped at its beginning
		}
		models[i], err = weights.Open(dir)
		testmodel.OK(t, err)
		defer models[i].Close()
	}
	for _, order := range [][2]int{{0, 1}, {1, 0}} {
		if same, err := sameFile(models[order[0]], models[order[1]], "extra.txt"); !errors.Is(err, syscall.EIO) {
			t.Errorf("same %v, error %v, want %v", same, err, syscall.EIO)
		}
	}
}

// TestUnreadManifest: a manifest that exists but cannot be read is an error, because its claims are unknown.
func TestUnreadManifest(t *testing.T) {
	dir := t.TempDir()
	head, _, err := weights.EncodeHeader([]weights.Info{{Name: "a", DType: weights.U8, Shape: []int{1}}}, nil)
	testmodel.OK(t, err)
	testmodel.OK(t, os.WriteFile(filepath.Join(dir, "model.safetensors"), append(head, 0), 0o666))
	m, err := weights.Open(dir)
	testmodel.OK(t, err)
	defer m.Close()
	manifest := filepath.Join(dir, plan.ManifestName)
	testmodel.OK(t, os.Symlink("/proc/self/mem", manifest)) // nothing is mapped at its beginning
	if r, err := Models(t.Context(), m, m, Options{}); !errors.Is(err, syscall.EIO) {
		t.Errorf("%+v, error %v, want %v", r, err, syscall.EIO)
	}
	testmodel.OK(t, os.Remove(manifest))
	testmodel.OK(t, os.WriteFile(manifest, []byte("{"), 0o666))
	if r, err := Models(t.Context(), m, m, Options{}); err != nil || len(r.Problems) == 0 {
		t.Errorf("malformed: %+v, error %v, want a problem", r, err)
	}
}
