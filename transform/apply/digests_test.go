package apply

import (
	"bytes"
	"context"
	"crypto/sha256"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// oneObject is a store in memory that holds one object.
type oneObject []byte

func (o oneObject) URL() string { return "s3://bucket/model" }
func (o oneObject) List(context.Context) ([]weights.Object, error) {
	return []weights.Object{{Path: "model.safetensors", Size: int64(len(o))}}, nil
}
func (o oneObject) ReadAt(_ context.Context, _ weights.Object, p []byte, at int64) error {
	copy(p, o[at:])
	return nil
}

// counted is an output that only counts bytes.
type counted int64

func (c *counted) Write(p []byte) (int, error) { *c += counted(len(p)); return len(p), nil }
func (c *counted) Close() error                { return nil }
func (c *counted) Abort()                      {}

// TestDigests: whatever the sizes of source and result, and of the pieces in which the result comes, the digests are
// those of the whole files. A source of zeros alone would not show bytes in a wrong order.
func TestDigests(t *testing.T) {
	for _, test := range []struct{ source, result, piece int }{
		{5 << 20, 5 << 20, chunkBytes}, {5<<20 + 7, 5<<20 + 7, 1000}, {3 << 20, 9, 4}, {100, 3 << 20, chunkBytes}, {0, 10, 3}, {10, 0, 1}, {1 << 20, 1<<20 + 64, 70_001},
	} {
		head, _, err := weights.EncodeHeader([]weights.Info{{Name: "w", DType: weights.U8, Shape: []int{test.source}, End: int64(test.source)}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		random := rand.NewChaCha8([32]byte{1})
		data, out := make([]byte, test.source), make([]byte, test.result)
		random.Read(data)
		random.Read(out)
		store := oneObject(slices.Concat(head, data))
		list, _ := store.List(t.Context())
		f, err := weights.OpenObject(t.Context(), store, list[0])
		if err != nil {
			t.Fatal(err)
		}
		other := []byte("another head")
		d := newDigests(f, other, int64(len(out)))
		for piece := range slices.Chunk(out, test.piece) {
			if err := d.add(piece); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.end(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := d.source.Sum(nil), sha256.Sum256(store); !bytes.Equal(got, want[:]) {
			t.Errorf("%v: the source has digest %x, want %x", test, got, want)
		}
		if got, want := d.result.Sum(nil), sha256.Sum256(append(other, out...)); !bytes.Equal(got, want[:]) {
			t.Errorf("%v: the result has digest %x, want %x", test, got, want)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDigestsOfExtras: the digest of a source in a store does not wait for tensors that are written after the digest has
// ended.
func TestDigestsOfExtras(t *testing.T) {
	const n = 24 << 20
	info := weights.Info{Name: "w", DType: weights.BF16, Shape: []int{n / 2}, End: n}
	head, _, err := weights.EncodeHeader([]weights.Info{info}, nil)
	if err != nil {
		t.Fatal(err)
	}
	store := oneObject(append(bytes.Clone(head), make([]byte, n)...))
	list, _ := store.List(t.Context())
	f, err := weights.OpenObject(t.Context(), store, list[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tensor, _ := f.Tensor("w")
	w := &quant.Weight{Name: "w", DType: weights.BF16, Shape: info.Shape, Unit: 1, Parts: []quant.Part{{Tensor: tensor}}}
	extras := []extra{newExtra("w.shift", 16<<20, 1)}
	s := &shardWriter{src: f, result: f, places: []quant.Place{{Weight: w}}, programs: []*program.Program{nil}, extras: extras, workers: 1, done: func(int64) {}}
	ctx, end := context.WithTimeout(t.Context(), 20*time.Second) // limit for the failure, in which write waits for ever
	defer end()
	var wrote counted
	if _, err := s.write(ctx, func(context.Context, *weights.File, []byte, int64) (weights.Output, error) { return &wrote, nil }); err != nil {
		t.Fatal(err)
	}
	if wrote != n+64<<20 {
		t.Errorf("%d bytes were written", wrote)
	}
}
