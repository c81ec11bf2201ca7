package weights_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
)

// zeros is a store with one file, whose tensors are all zero. It records the memory of data from stores while it is read.
type zeros struct {
	head []byte
	size int64
	peak *atomic.Int64
}

func (z zeros) URL() string { return "s3://bucket/model" }

func (z zeros) List(context.Context) ([]weights.Object, error) {
	return []weights.Object{{Path: "model.safetensors", Size: int64(len(z.head)) + z.size}}, nil
}

func (z zeros) ReadAt(_ context.Context, _ weights.Object, p []byte, at int64) error {
	clear(p)
	if at < int64(len(z.head)) {
		copy(p, z.head[at:])
	}
	for held := weights.HeldBytes(); ; {
		if was := z.peak.Load(); was >= held || z.peak.CompareAndSwap(was, held) {
			return nil
		}
	}
}

// TestVerifyMemory: many workers that compare models in stores hold no more than a few tensors in memory.
func TestVerifyMemory(t *testing.T) {
	const tensors, n = 12, 16 << 20
	var infos []weights.Info
	for i := range tensors {
		infos = append(infos, weights.Info{Name: fmt.Sprintf("t%02d", i), DType: weights.BF16, Shape: []int{4096, n / 8192}, End: n})
	}
	head, _, err := weights.EncodeHeader(infos, nil)
	if err != nil {
		t.Fatal(err)
	}
	var peak atomic.Int64
	open := func() *weights.Model {
		m, err := weights.OpenStore(t.Context(), zeros{head, tensors * n, &peak}, "model.safetensors")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	report, err := transform.Verify(t.Context(), open(), open(), transform.VerifyOptions{Workers: tensors})
	if err != nil || len(report.Tensors) != tensors {
		t.Fatal(report, err)
	}
	if most := int64(176 << 20); peak.Load() > most {
		t.Errorf("%d MiB were in memory, want at most %d", peak.Load()>>20, most>>20)
	}
	t.Logf("%d MiB", peak.Load()>>20)
}
