package verify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
)

// files holds shards against the digests that the manifest records, and compares all other files.
func (r *Report) files(ctx context.Context, src, out *weights.Model, man *transform.Manifest, o Options) error {
	if man != nil {
		if err := r.shards(ctx, src, out, man, o); err != nil {
			return err
		}
	}
	for _, name := range src.Others {
		if name == transform.ManifestName || r.Plan != nil && !r.Plan.DropIn && name == weights.IndexName {
			continue // made anew
		}
		same, err := sameFile(filepath.Join(src.Dir, name), filepath.Join(out.Dir, name))
		switch {
		case os.IsNotExist(err):
			r.problem("file %s is missing from the output", name)
		case err != nil:
			return err
		case !same:
			r.problem("file %s differs from the source's", name)
		}
	}
	for _, name := range out.Others {
		if name != transform.ManifestName && !slices.Contains(src.Others, name) {
			r.problem("file %s of the output has no source", name)
		}
	}
	return ctx.Err()
}

// shards hashes every shard of both models.
func (r *Report) shards(ctx context.Context, src, out *weights.Model, man *transform.Manifest, o Options) error {
	type job struct {
		file *weights.File
		want string
		got  string
	}
	var jobs []*job
	find := func(m *weights.Model, what, name, want string) {
		for _, f := range m.Shards {
			if filepath.Base(f.Path) == name {
				jobs = append(jobs, &job{file: f, want: want})
				return
			}
		}
		r.problem("the manifest names the shard %s, which the %s has not", name, what)
	}
	for _, s := range man.Shards {
		find(src, "source", s.File, s.Source)
		find(out, "output", s.File, s.Output)
	}
	if len(man.Shards) != len(out.Shards) {
		r.problem("the manifest names %d shards, the output has %d", len(man.Shards), len(out.Shards))
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(o.Workers)
	for _, j := range jobs {
		g.Go(func() (err error) {
			j.got, err = digest(ctx, j.file)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, j := range jobs {
		if j.got != j.want {
			r.problem("%s: its SHA-256 is %.12s…, the manifest says %.12s…: the file was changed", j.file.Path, j.got, j.want)
		}
	}
	return nil
}

func digest(ctx context.Context, f *weights.File) (string, error) {
	h := sha256.New()
	err := weights.Guard(f.Path, func() error {
		h.Write(f.Head())
		for data := f.Data(); len(data) > 0; {
			if err := ctx.Err(); err != nil {
				return err
			}
			n := min(len(data), 1<<22)
			h.Write(data[:n])
			data = data[n:]
		}
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

func sameFile(a, b string) (bool, error) {
	fa, err := os.Open(a)
	if err != nil {
		return false, err
	}
	defer fa.Close()
	fb, err := os.Open(b)
	if err != nil {
		return false, err
	}
	defer fb.Close()
	bufA, bufB := make([]byte, 1<<16), make([]byte, 1<<16)
	for {
		n, errA := io.ReadFull(fa, bufA)
		m, errB := io.ReadFull(fb, bufB)
		if !bytes.Equal(bufA[:n], bufB[:m]) {
			return false, nil
		}
		if errA != nil || errB != nil { // both ended, or one cannot be read
			for _, err := range []error{errA, errB} {
				if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
					return false, err
				}
			}
			return true, nil
		}
	}
}
