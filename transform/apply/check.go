package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/internal/progress"
	"github.com/lowtoggle/lowtoggle/weights"
)

// check hashes the shards that an earlier call finished, and their sources. It removes shards whose digest differs
// from the recorded digest, so that they are written again. It also removes the written adapter if the model's adapter
// has changed, because the plan does not identify the adapter. Any other changed source is an error.
func (c *conversion) check(ctx context.Context, st *stage) error {
	type finished struct {
		shard   *shardWriter
		name    string
		damaged bool
	}
	var all []*finished
	var total int64
	for _, w := range c.shards {
		name := filepath.Base(w.src.Path)
		if _, ok := st.finished[name]; !ok {
			continue
		}
		info, err := os.Stat(st.path(name))
		if err != nil {
			return err
		}
		total += info.Size() + w.src.Size()
		all = append(all, &finished{shard: w, name: name})
	}
	var read atomic.Int64
	advance := func(n int) {
		c.opt.Progress(progress.Event{Stage: "check", Done: read.Add(int64(n)), Total: total})
	}
	err := parallel.Run(ctx, len(all), c.opt.Workers, func(ctx context.Context, i int) error {
		f := all[i]
		was, src := st.finished[f.name], f.shard.src
		source, err := c.digestSource(ctx, src, advance)
		if err != nil {
			return err
		}
		if source != was.Source && src != c.Model.Adapter {
			return changedSource(src.Path, "has changed", st.dir)
		}
		result, err := digestFile(ctx, st.path(f.name), advance)
		f.damaged = source != was.Source || result != was.Output
		return err
	})
	if err != nil {
		return err
	}
	for _, f := range all {
		if f.damaged {
			delete(st.finished, f.name)
			err = os.Remove(st.path(f.name))
		} else {
			err = st.complete(f.name)
		}
		if err != nil {
			return err
		}
	}
	st.keep = len(st.finished) > 0
	return nil
}

// digestFile returns the SHA-256 of a file in hex. advance is called with the number of bytes of each read.
func digestFile(ctx context.Context, path string, advance func(n int)) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return digestOfReader(ctx, f, advance)
}

// digestSource is [digestFile] for a file of the source.
func (c *conversion) digestSource(ctx context.Context, src *weights.File, advance func(n int)) (string, error) {
	f, err := c.Model.Reader(filepath.Base(src.Path))
	if err != nil {
		return "", err
	}
	defer f.Close()
	return digestOfReader(ctx, f, advance)
}

func digestOfReader(ctx context.Context, f io.Reader, advance func(n int)) (string, error) {
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
