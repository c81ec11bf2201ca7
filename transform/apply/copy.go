package apply

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/transform/card"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// copyOthers copies the other files of the model's folder, except leftovers, with permissions and owners. For a
// single-file model it copies the configs beside the file. The manifest of an earlier conversion is not copied,
// because the new manifest contains it.
func (c *conversion) copyOthers(ctx context.Context, st *stage) error {
	if !c.Model.Single && c.Model.OnDisk() {
		if err := c.makeSubfolders(c.Model.Dir, st.dir); err != nil {
			return err
		}
	}
	for _, name := range c.others() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.copyOther(st, name); err != nil {
			return err
		}
	}
	return nil
}

// others lists the files to copy.
func (c *conversion) others() []string {
	return slices.DeleteFunc(slices.Clone(c.Model.Others), func(name string) bool {
		return name == plan.ManifestName || name == card.Name && c.opt.Card != nil || c.leavesOut(name)
	})
}

// leavesOut reports whether a file is not copied.
func (c *conversion) leavesOut(file string) bool {
	return slices.ContainsFunc(c.leftOut, func(l weights.Leftover) bool { return l.Covers(file) })
}

// holdsLeftoversOnly reports whether a folder has files and all of them are leftovers.
func (c *conversion) holdsLeftoversOnly(folder string) bool {
	inside := func(file string) bool { return strings.HasPrefix(file, folder+"/") }
	return slices.ContainsFunc(c.Model.Others, inside) &&
		!slices.ContainsFunc(c.Model.Others, func(file string) bool { return inside(file) && !c.leavesOut(file) })
}

// card returns the result's model card; nil: copy the source's card. open opens the result; see [CardFunc].
func (c *conversion) card(ctx context.Context, open func() (*weights.Model, error)) (text []byte, err error) {
	if c.opt.Card == nil {
		return nil, nil
	}
	var source []byte
	if slices.Contains(c.Model.Others, card.Name) {
		if source, err = c.Model.ReadFile(card.Name, bounded.Config); err != nil {
			return nil, err
		}
	}
	return c.opt.Card(ctx, open, source)
}

// writeCard writes the result's model card, with the permissions of the source's.
func (c *conversion) writeCard(ctx context.Context, st *stage) error {
	text, err := c.card(ctx, func() (*weights.Model, error) { return weights.Open(st.dir) })
	if err != nil || text == nil {
		return err
	}
	from := c.Model.Shards[0].Path // a new card has this file's permissions
	if slices.Contains(c.Model.Others, card.Name) {
		from = c.Model.Path(card.Name)
	}
	to := st.path(card.Name)
	err = durably(to, func(f *os.File) error {
		_, err := f.Write(text)
		return errors.Join(err, likeFile(to, from))
	})
	return errors.Join(err, atomicfile.SyncFolder(st.dir), st.complete(card.Name))
}

// makeSubfolders creates the subfolders of the folder from in the folder to. Empty subfolders are created too, but not
// subfolders that hold only leftovers.
func (c *conversion) makeSubfolders(from, to string) error {
	from, err := filepath.EvalSymlinks(from) // WalkDir does not follow a link
	if err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || path == from {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if folder := filepath.ToSlash(rel); c.leavesOut(folder+"/") || c.holdsLeftoversOnly(folder) {
			return filepath.SkipDir
		}
		made := filepath.Join(to, rel)
		if err := os.MkdirAll(made, 0o777); err != nil {
			return err
		}
		return errors.Join(likeFolder(made, path), atomicfile.SyncFolder(filepath.Dir(made)))
	})
}

// other opens one of the other files. It returns the content and its length in bytes.
func (c *conversion) other(name string) (io.ReadCloser, int64, error) {
	switch {
	case c.index != nil && name == weights.IndexName:
		return io.NopCloser(bytes.NewReader(c.index)), int64(len(c.index)), nil
	case c.Target != nil && name == weights.ConfigName:
		return io.NopCloser(bytes.NewReader(c.Target.Config)), int64(len(c.Target.Config)), nil
	}
	size, err := c.Model.FileSize(name)
	if err != nil {
		return nil, 0, err
	}
	r, err := c.Model.Reader(name)
	return r, size, err
}

func (c *conversion) copyOther(st *stage, name string) error {
	src, _, err := c.other(name)
	if err != nil {
		return err
	}
	defer src.Close()
	to := st.path(filepath.FromSlash(name))
	if !c.Model.OnDisk() {
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
	}
	err = durably(to, func(f *os.File) error {
		_, err := io.Copy(f, src)
		return errors.Join(err, likeFile(to, c.Model.Path(name)))
	})
	return errors.Join(err, atomicfile.SyncFolder(filepath.Dir(to)), st.complete(filepath.FromSlash(name)))
}

// holds reports whether the model's folder has a file or folder of this name.
func (c *conversion) holds(name string) bool {
	if c.Model.OnDisk() {
		_, err := os.Lstat(c.Model.Path(name))
		return err == nil
	}
	return c.hasShard(name) || slices.ContainsFunc(c.Model.Others, func(file string) bool { return file == name || strings.HasPrefix(file, name+"/") })
}

// durably creates or replaces a file, calls fill to write the content, and flushes the file to the disk.
func durably(path string, fill func(*os.File) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(fill(f), f.Sync(), f.Close())
}
