package weights_test

import (
	"bytes"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestSampled: advice changes no data in any kind of memory.
func TestSampled(t *testing.T) {
	m := testmodel.Tiny(t, "llama-tiny", weights.F32)
	for _, info := range m.Infos() {
		x, _ := m.Tensor(info.Name)
		before := bytes.Clone(x.Data)
		end := weights.Sampled(x.Data, x.Data[:len(x.Data)/2], x.Data[len(x.Data):], nil)
		if !bytes.Equal(x.Data, before) {
			t.Errorf("%s: other data while it is sampled", info.Name)
		}
		end()
		weights.Forget(x.Data)
		weights.Prefetch(x.Data)
		if !bytes.Equal(x.Data, before) {
			t.Errorf("%s: other data afterwards", info.Name)
		}
	}
	// Memory that belongs to no file keeps its data.
	own := []byte{1, 2, 3}
	weights.Sampled(own, own)()
	weights.Forget(own)
	if !bytes.Equal(own, []byte{1, 2, 3}) {
		t.Error("memory of no file was forgotten")
	}
}
