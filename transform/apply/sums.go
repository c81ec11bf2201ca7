package apply

import (
	"context"

	"github.com/lowtoggle/lowtoggle/internal/digest"
	"github.com/lowtoggle/lowtoggle/weights"
)

// sums hashes the data sections of a shard and of its result at the same time.
type sums struct {
	*digest.Pair
	path  string // of the shard
	shard []byte
	size  int64 // of the result
}

// hash hashes the bytes as they are written, and equally many bytes of the shard.
func (s *sums) hash(ctx context.Context, written <-chan *chunk, buffers *buffers) error {
	share, hashed, read := float64(len(s.shard))/float64(s.size), 0, 0
	for c := range written {
		hashed += len(c.out)
		upTo := max(read, min(int(float64(hashed)*share), len(s.shard)))
		if err := s.write(s.shard[read:upTo], c.out); err != nil {
			return err
		}
		read = upTo
		c.release(buffers)
	}
	for read < len(s.shard) && ctx.Err() == nil {
		upTo := min(read+chunkBytes, len(s.shard))
		if err := s.write(s.shard[read:upTo], nil); err != nil {
			return err
		}
		read = upTo
	}
	return ctx.Err()
}

// write appends bytes of the mapped shard and of the result.
func (s *sums) write(shard, result []byte) error {
	return weights.Guard(s.path, func() error {
		s.Write(shard, result)
		return nil
	})
}
