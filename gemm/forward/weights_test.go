package forward_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/weights"
)

func TestStored(t *testing.T) {
	infos := []weights.Info{{Name: "a", DType: weights.BF16, Shape: []int{2, 2}}, {Name: "b", DType: weights.F64, Shape: []int{1}}}
	head, _, err := weights.EncodeHeader(infos, nil)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.safetensors")
	data := append(head, 0x80, 0x3f, 0x00, 0xc0, 0x00, 0x00, 0x00, 0x3f)
	if err := os.WriteFile(path, append(data, make([]byte, 8)...), 0o666); err != nil {
		t.Fatal(err)
	}
	m, err := weights.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	w := forward.Stored(m)
	got, err := w.Tensor(t.Context(), "a")
	if diff := cmp.Diff([]float32{1, -2, 0, 0.5}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	for name, want := range map[string]string{"b": `tensor "b": values of type F64 cannot be decoded`, "c": `tensor "c": is not in`} {
		if _, err := w.Tensor(t.Context(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
