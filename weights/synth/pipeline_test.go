package synth

import (
	"context"
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// manyBlocks returns a model of one shard that takes about six blocks.
func manyBlocks(t *testing.T) (*model, shard) {
	t.Helper()
	shards, err := split([]weights.Info{
		{Name: "v", DType: weights.BF16, Shape: []int{300}},
		{Name: "w", DType: weights.BF16, Shape: []int{6000, 1000}},
		{Name: "u", DType: weights.BF16, Shape: []int{2, 2_500_000}}, // a row is longer than a block
	}, 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	return &model{kinds: map[string]kind{"v": norm}}, shards[0]
}

// short is 1 under the race detector: there the test tries two numbers of workers instead of three.
func short() int {
	if testing.Short() {
		return 1
	}
	return 0
}

func TestPipelineKeepsOrder(t *testing.T) {
	m, s := manyBlocks(t)
	var want [sha256.Size]byte
	for _, workers := range []int{1, 7, 2}[:3-short()] {
		h := sha256.New()
		n := int64(0)
		err := pipeline(context.Background(), workers, m.blocks(s, 1), func(data []byte) error {
			n += int64(len(data))
			h.Write(data)
			return nil
		})
		if err != nil || n != s.size() {
			t.Fatalf("%d workers: %d bytes of %d, error %v", workers, n, s.size(), err)
		}
		got := [sha256.Size]byte(h.Sum(nil))
		if workers == 1 {
			want = got
		} else if got != want {
			t.Errorf("%d workers give other bytes than 1", workers)
		}
	}
}

func TestPipelineStops(t *testing.T) {
	m, s := manyBlocks(t)
	full := errors.New("disk full")
	for _, workers := range []int{1, 7, 2}[:3-short()] {
		calls := 0
		err := pipeline(context.Background(), workers, m.blocks(s, 1), func([]byte) error {
			calls++
			return full
		})
		if !errors.Is(err, full) || calls != 1 {
			t.Errorf("%d workers: error %v after %d writes, want the first write's own", workers, err, calls)
		}
		ctx, cancel := context.WithCancel(context.Background())
		err = pipeline(ctx, workers, m.blocks(s, 1), func([]byte) error {
			cancel()
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%d workers: error %v after a cancel", workers, err)
		}
	}
}
