package apply

import (
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

// copyOthers copies the other files of the model's folder but leftovers, with permissions and owners. For a single file it copies its configs.
// The manifest of an earlier conversion is not copied, because the new manifest contains it.
func (c *conversion) copyOthers(ctx context.Context, st *stage) error {
	if !c.Model.Single {
		if err := c.makeSubfolders(c.Model.Dir, st.dir); err != nil {
			return err
		}
	}
	for _, name := range c.Model.Others {
		if err := ctx.Err(); err != nil {
			return err
		}
		if name == plan.ManifestName || name == card.Name && c.opt.Card != nil || c.leavesOut(name) {
			continue
		}
		if err := c.copyOther(st, filepath.FromSlash(name)); err != nil {
			return err
		}
	}
	return nil
}

// leavesOut reports whether a file is not copied.
func (c *conversion) leavesOut(file string) bool {
	return slices.ContainsFunc(c.leftOut, func(l weights.Leftover) bool { return l.Covers(file) })
}

// holdsLeftoversOnly reports whether a folder has files and none of them is copied.
func (c *conversion) holdsLeftoversOnly(folder string) bool {
	inside := func(file string) bool { return strings.HasPrefix(file, folder+"/") }
	return slices.ContainsFunc(c.Model.Others, inside) &&
		!slices.ContainsFunc(c.Model.Others, func(file string) bool { return inside(file) && !c.leavesOut(file) })
}

// writeCard writes the result's model card, with the permissions of the source's.
func (c *conversion) writeCard(ctx context.Context, st *stage) error {
	if c.opt.Card == nil {
		return nil
	}
	var source []byte
	path := filepath.Join(c.Model.Dir, card.Name)
	from := c.Model.Shards[0].Path // whose permissions a new card has
	if slices.Contains(c.Model.Others, card.Name) {
		from = path
		var err error
		if source, err = bounded.ReadFile(path, bounded.Config); err != nil {
			return err
		}
	}
	text, err := c.opt.Card(ctx, st.dir, source)
	if err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	to := st.path(card.Name)
	err = durably(to, func(f *os.File) error {
		_, err := f.Write(text)
		return errors.Join(err, like(to, info))
	})
	return errors.Join(err, atomicfile.SyncFolder(st.dir), st.complete(card.Name))
}

// makeSubfolders makes the subfolders of from also in to, including empty ones, without those that hold nothing but leftovers.
func (c *conversion) makeSubfolders(from, to string) error {
	from, err := filepath.EvalSymlinks(from) // WalkDir does not enter a link
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

func (c *conversion) copyOther(st *stage, name string) error {
	path := filepath.Join(c.Model.Dir, name)
	src, err := os.Open(path)
	if err != nil {
		return err
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil {
		return err
	}
	to := st.path(name)
	err = durably(to, func(f *os.File) error {
		switch {
		case c.index != nil && path == c.Model.Index:
			_, err = f.Write(c.index)
		case c.Target != nil && name == weights.ConfigName:
			_, err = f.Write(c.Target.Config)
		default:
			_, err = io.Copy(f, src)
		}
		return errors.Join(err, like(to, info))
	})
	return errors.Join(err, atomicfile.SyncFolder(filepath.Dir(to)), st.complete(name))
}

// durably creates or replaces a file, lets fill write it, and flushes it to the disk.
func durably(path string, fill func(*os.File) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(fill(f), f.Sync(), f.Close())
}
