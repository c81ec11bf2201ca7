package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/internal/progress"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Made is a folder that a conversion made. All its files have the recorded digests.
type Made struct {
	Manifest *plan.Manifest
	dir      string
	files    map[string]fs.FileInfo // by slash-separated path in the folder
}

// ErrNotMade marks a folder that no conversion made, or that was changed afterwards.
var ErrNotMade = errors.New("is not the unchanged result of a conversion")

// listFiles returns the files of a folder by slash-separated path in the folder.
func listFiles(dir string) (map[string]fs.FileInfo, error) {
	files := map[string]fs.FileInfo{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(rel)], err = d.Info()
		return err
	})
	return files, err
}

// record lists the files of the stage with their sizes and SHA-256. The digests of shards are already known.
func (st *stage) record(ctx context.Context, shards []plan.Shard) (list []plan.File, err error) {
	files, err := listFiles(st.dir)
	if err != nil {
		return nil, err
	}
	known := map[string]string{}
	for _, s := range shards {
		known[s.File] = s.Output
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name == journalName || name == plan.ManifestName {
			continue
		}
		f := plan.File{Path: name, Size: files[name].Size(), SHA256: known[name]}
		if f.SHA256 == "" {
			if f.SHA256, err = digestFile(ctx, st.path(filepath.FromSlash(name)), func(int) {}); err != nil {
				return nil, err
			}
		}
		list = append(list, f)
	}
	return list, nil
}

// OpenMade reads and hashes all files of a folder. The error is an [ErrNotMade] if the folder has no valid manifest,
// has files that the manifest does not list, or has changed files; the error names them. If there is no folder, the
// error is fs.ErrNotExist. event may be nil.
func OpenMade(ctx context.Context, dir string, workers int, event func(progress.Event)) (*Made, error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	dir = filepath.Clean(dir) // Lstat follows a link that ends with a separator
	if info, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, weights.Absent(dir, "there is no such folder, so nothing can be replaced: name the result of an earlier conversion")
	} else if err != nil {
		return nil, err
	} else if info.Mode()&fs.ModeSymlink != 0 {
		return nil, notMade(dir, "it is a link: give the path of the folder behind the link")
	} else if !info.IsDir() {
		return nil, notMade(dir, "it is not a folder")
	}
	man, err := plan.ReadManifest(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, notMade(dir, "it has no "+plan.ManifestName)
	case err != nil:
		return nil, notMade(dir, err.Error())
	case man.Files == nil:
		return nil, notMade(dir, "its "+plan.ManifestName+" lists no files, because an older version of lowtoggle wrote it")
	}
	files, err := listFiles(dir)
	if err != nil {
		return nil, err
	}
	m := &Made{man, dir, files}
	return m, m.check(ctx, workers, event)
}

func notMade(dir, why string) error {
	return weights.FileErrorf(dir, "%w", outError{fmt.Errorf("%w: %s", ErrNotMade, why), fs.ErrExist})
}

// check compares all files with the manifest.
func (m *Made) check(ctx context.Context, workers int, event func(progress.Event)) error {
	var total int64
	listed := map[string]bool{plan.ManifestName: true}
	for _, f := range m.Manifest.Files {
		listed[f.Path] = true
		total += f.Size
	}
	wrong := make([]string, len(m.Manifest.Files))
	var read atomic.Int64
	err := parallel.Run(ctx, len(m.Manifest.Files), parallel.Workers(workers), func(ctx context.Context, i int) error {
		f := m.Manifest.Files[i]
		info := m.files[f.Path]
		switch {
		case info == nil:
			wrong[i] = f.Path + " is missing"
			return nil
		case !info.Mode().IsRegular() || info.Size() != f.Size:
			wrong[i] = f.Path + " was changed"
			return nil
		}
		sum, err := digestFile(ctx, filepath.Join(m.dir, filepath.FromSlash(f.Path)), func(n int) {
			if event != nil {
				event(progress.Event{Stage: "check", Done: read.Add(int64(n)), Total: total})
			}
		})
		if err == nil && sum != f.SHA256 {
			wrong[i] = f.Path + " was changed"
		}
		return err
	})
	if err != nil {
		return err
	}
	wrong = slices.DeleteFunc(wrong, func(s string) bool { return s == "" })
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		if !listed[name] {
			wrong = append(wrong, name+" is not in the manifest")
		}
	}
	const most = 10
	if n := len(wrong); n > most {
		wrong = append(wrong[:most:most], fmt.Sprintf("and %d more", n-most))
	}
	if len(wrong) > 0 {
		return notMade(m.dir, strings.Join(wrong, ", "))
	}
	return nil
}

// unchanged returns an error if a file was added, removed or written since m was opened. when ends the error's text.
// No file is read.
func (m *Made) unchanged(when string) error {
	files, err := listFiles(m.dir)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		if files[name] == nil {
			return notMade(m.dir, name+" was removed "+when)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		was, now := m.files[name], files[name]
		if was == nil || !os.SameFile(was, now) || was.Size() != now.Size() || !was.ModTime().Equal(now.ModTime()) {
			return notMade(m.dir, name+" was changed "+when)
		}
	}
	return nil
}

// SameSource returns an error if a shard of src differs from the shard that was converted, or if another file differs
// from the copied file. It hashes all these files.
func (m *Made) SameSource(ctx context.Context, src *weights.Model, workers int, event func(progress.Event)) error {
	recorded := map[string]string{}
	for _, f := range m.Manifest.Files {
		if slices.Contains(src.Others, f.Path) && !m.rewrites(f.Path) {
			recorded[f.Path] = f.SHA256
		}
	}
	for _, s := range m.Manifest.Shards {
		recorded[s.File] = s.Source
	}
	for _, f := range src.Files() {
		if name := filepath.Base(f.Path); recorded[name] == "" {
			return weights.FileErrorf(f.Path, "did not exist when %s was made", m.dir)
		}
	}
	names := slices.Sorted(maps.Keys(recorded))
	var total, read atomic.Int64
	return parallel.Run(ctx, len(names), parallel.Workers(workers), func(ctx context.Context, i int) error {
		path := src.Path(names[i])
		size, err := src.FileSize(names[i])
		if err != nil {
			return err
		}
		total.Add(size)
		f, err := src.Reader(names[i])
		if err != nil {
			return err
		}
		defer f.Close()
		sum, err := digestOfReader(ctx, f, func(n int) {
			if event != nil {
				event(progress.Event{Stage: "check source", Done: read.Add(int64(n)), Total: total.Load()})
			}
		})
		if err == nil && sum != recorded[names[i]] {
			err = weights.FileErrorf(path, "has changed since %s was made", m.dir)
		}
		return err
	})
}

// rewrites reports whether a conversion may change the bytes of a file beside the shards.
func (m *Made) rewrites(name string) bool {
	switch name {
	case weights.IndexName, "README.md":
		return true
	case weights.ConfigName:
		return m.Manifest.Plan.Request.Format != ""
	}
	return false
}
