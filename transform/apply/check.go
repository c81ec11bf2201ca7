package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"os"
	"slices"
	"sync/atomic"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// check hashes the finished shards of an earlier call. It removes those whose digest is not the recorded one, so that
// they are written again. progress gets the bytes read so far and in total.
func (st *stage) check(ctx context.Context, workers int, progress func(done, total int64)) error {
	names := slices.Sorted(maps.Keys(st.finished))
	var total int64
	for _, name := range names {
		info, err := os.Stat(st.path(name))
		if err != nil {
			return err
		}
		total += info.Size()
	}
	var read atomic.Int64
	advance := func(n int) { progress(read.Add(int64(n)), total) }
	damaged := make([]bool, len(names))
	err := parallel.Run(ctx, len(names), workers, func(ctx context.Context, i int) error {
		sum, err := digestFile(ctx, st.path(names[i]), advance)
		damaged[i] = err == nil && sum != st.finished[names[i]].Output
		return err
	})
	if err != nil {
		return err
	}
	for i, name := range names {
		if damaged[i] {
			delete(st.finished, name)
			if err := os.Remove(st.path(name)); err != nil {
				return err
			}
		}
	}
	st.keep = len(st.finished) > 0
	return nil
}

// digestFile returns the SHA-256 of a file in hex. advance gets the number of bytes of each read.
func digestFile(ctx context.Context, path string, advance func(n int)) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum, buf := sha256.New(), make([]byte, chunkBytes)
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := f.Read(buf)
		sum.Write(buf[:n])
		if n > 0 {
			advance(n)
		}
		if err == io.EOF {
			return hex.EncodeToString(sum.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
	}
}
