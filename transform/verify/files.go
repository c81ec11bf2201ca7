package verify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// files compares shards with the digests in the manifest, and all other files with the source's.
func (r *Report) files(ctx context.Context, src, out *weights.Model, man *plan.Manifest, o Options) error {
	if man != nil {
		if err := r.shards(ctx, src, out, man, o); err != nil {
			return err
		}
	}
	if err := r.heads(src, out); err != nil {
		return err
	}
	if r.reformatted() {
		if err := r.sameConfig(src, out); err != nil {
			return err
		}
	}
	gone := leftOut(src, man)
	for _, name := range src.Others {
		if name == plan.ManifestName || r.Plan != nil && !r.DropIn && name == weights.IndexName ||
			r.reformatted() && (name == weights.IndexName || name == weights.ConfigName) {
			continue // written by the conversion
		}
		if name == cardName {
			if err := r.sameCard(src, out); err != nil {
				return err
			}
			continue
		}
		same, err := sameFile(src, out, name)
		switch {
		case os.IsNotExist(err) && slices.ContainsFunc(gone, func(l weights.Leftover) bool { return l.Covers(name) }):
		case os.IsNotExist(err):
			r.problem("file %s is missing from the output", name)
		case err != nil:
			return err
		case !same:
			r.problem("file %s differs from the source's", name)
		}
	}
	for _, name := range out.Others {
		switch {
		case name == plan.ManifestName || slices.Contains(src.Others, name):
		case name == cardName:
			if err := r.sameCard(src, out); err != nil {
				return err
			}
		default:
			r.problem("file %s of the output is not in the source", name)
		}
	}
	return ctx.Err()
}

// shards hashes every shard of both models, and their adapters.
func (r *Report) shards(ctx context.Context, src, out *weights.Model, man *plan.Manifest, o Options) error {
	type job struct {
		source bool // of the source, not of the output
		file   *weights.File
		want   string
		got    string
	}
	var jobs []*job
	match := func(m *weights.Model, what string, digest func(plan.Shard) string) {
		files := shardsByName(m)
		named := map[string]bool{}
		for _, s := range man.Shards {
			switch f := files[s.File]; {
			case f == nil:
				r.problem("the manifest names the shard %s, which is not in the %s", s.File, what)
			case named[s.File]:
				r.problem("the manifest names the shard %s twice", s.File)
			default:
				jobs = append(jobs, &job{source: m == src, file: f, want: digest(s)})
			}
			named[s.File] = true
		}
		for _, f := range m.Files() {
			if !named[filepath.Base(f.Path)] {
				r.problem("the manifest does not name the shard %s of the %s", filepath.Base(f.Path), what)
			}
		}
	}
	before := len(r.Problems)
	match(src, "source", func(s plan.Shard) string { return s.Source })
	match(out, "output", func(s plan.Shard) string { return s.Output })
	err := parallel.Run(ctx, len(jobs), o.Workers, func(ctx context.Context, i int) (err error) {
		jobs[i].got, err = digest(ctx, jobs[i].file)
		return err
	})
	if err != nil {
		return err
	}
	whole := len(r.Problems) == before // both models have the manifest's shards
	var source, output bool            // whether a shard differs from the manifest
	for _, j := range jobs {
		if j.got != j.want {
			source, output = source || j.source, output || !j.source
			r.problem("%s: its SHA-256 is %.12s…, and the manifest says %.12s…: the file was changed after the conversion", j.file.Path, j.got, j.want)
		}
	}
	r.SourceChanged = whole && source && !output
	return nil
}

func shardsByName(m *weights.Model) map[string]*weights.File {
	files := map[string]*weights.File{}
	for _, f := range m.Files() {
		files[filepath.Base(f.Path)] = f
	}
	return files
}

// heads compares the shards' headers. They must have the same bytes. If tensors were added, they must have the same
// metadata, and the source's tensors in the source's order.
func (r *Report) heads(src, out *weights.Model) error {
	made := shardsByName(out)
	for _, a := range src.Files() {
		b := made[filepath.Base(a.Path)]
		if b == nil {
			continue // each of its tensors is missing or in another shard
		}
		err := weights.Guard(a.Path+" or "+b.Path, func() error {
			var names, kept []string
			for _, t := range a.Tensors {
				names = append(names, t.Name)
			}
			for _, t := range b.Tensors {
				if _, ok := src.Tensor(t.Name); ok {
					kept = append(kept, t.Name)
				}
			}
			switch {
			case !maps.Equal(a.Metadata, b.Metadata):
				r.problem("%s: the metadata differ from the source's", b.Path)
			case r.reformatted(): // its tensors are compared one by one
			case !slices.Equal(names, kept):
				r.problem("%s: the tensors are not those of the source's shard, or are in another order", b.Path)
			case len(kept) == len(b.Tensors) && !bytes.Equal(a.Head(), b.Head()):
				r.problem("%s: the header differs from the source's", b.Path)
			}
			return nil
		})
		if err != nil {
			return err
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
			h.Write(weights.Need(data[:n]))
			data = data[n:]
		}
		return nil
	})
	if err != nil {
		return "", err // after a disk error in the middle of a block, Sum would panic
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sameFile reports whether both models' folders hold a file with the same bytes.
func sameFile(a, b *weights.Model, name string) (bool, error) {
	fa, err := a.Reader(name)
	if err != nil {
		return false, err
	}
	defer fa.Close()
	fb, err := b.Reader(name)
	if err != nil {
		return false, err
	}
	defer fb.Close()
	bufA, bufB := make([]byte, 1<<16), make([]byte, 1<<16)
	for {
		n, errA := io.ReadFull(fa, bufA)
		m, errB := io.ReadFull(fb, bufB)
		for _, err := range []error{errA, errB} { // an unreadable file is not a difference
			if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
				return false, err
			}
		}
		if !bytes.Equal(bufA[:n], bufB[:m]) {
			return false, nil
		}
		if errA != nil || errB != nil { // both files have ended
			return true, nil
		}
	}
}
