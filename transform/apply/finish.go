package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
	"github.com/lowtoggle/lowtoggle/internal/lock"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/internal/progress"
	"github.com/lowtoggle/lowtoggle/transform/card"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// PartsError says which parts must be run, or run again, before [FinishParts] can end.
type PartsError struct {
	Dir     string
	Of      int
	Parts   []int   // sorted
	Reasons []error // one for each of the first shards
	late    bool    // all that is missing may only not be visible yet
	again   bool    // all that is missing is recorded as written
}

// mostReasons is the largest number of shards that a [PartsError] explains.
const mostReasons = 8

func (e *PartsError) Error() string {
	var b strings.Builder
	for _, r := range e.Reasons {
		fmt.Fprintf(&b, "%v\n", r)
	}
	fmt.Fprintf(&b, "%s: %d of %d parts are missing or damaged: %s", e.Dir, len(e.Parts), e.Of, ranges(e.Parts))
	return b.String()
}

// Is reports whether the parts may only have to be awaited.
func (e *PartsError) Is(target error) bool { return target == ErrTemporary && e.again }

// ranges writes sorted numbers as 1, 3-5.
func ranges(numbers []int) string {
	var list []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		if j > i {
			list = append(list, fmt.Sprintf("%d-%d", numbers[i], numbers[j]))
		} else {
			list = append(list, fmt.Sprint(numbers[i]))
		}
		i = j + 1
	}
	return strings.Join(list, ", ")
}

// FinishParts makes the output of the shards that all parts have written. It compares their headers, sizes and records with the
// plan, and does not read their data, except that of a file whose time has changed and that of an adapter. Then it writes
// the model's other files, the index and the manifest, and renames the folder. before is true if the output was finished
// by an earlier call.
//
// Parts that are missing or damaged are a [PartsError].
func FinishParts(ctx context.Context, src Source, p *plan.Plan, out string, o PartOptions) (man *plan.Manifest, before bool, err error) {
	man, before, err = finish(ctx, src, p, out, o)
	return man, before, Temporary(err, filepath.Clean(out)+partialSuffix)
}

func finish(ctx context.Context, src Source, p *plan.Plan, out string, o PartOptions) (man *plan.Manifest, before bool, err error) {
	c := &conversion{Source: src, plan: p, opt: Options{Workers: o.Workers, Progress: o.Progress}}
	if o.Progress == nil {
		c.opt.Progress = func(progress.Event) {}
	}
	if err := src.check(p); err != nil {
		return nil, false, err
	}
	f, err := newPartsFolder(out, p, 0, o.Version)
	if err != nil {
		return nil, false, err
	}
	if man, err := f.finishedBefore(); err != nil || man != nil {
		if err == nil && begunInParts(f.dir) { // killed after the renaming
			err = f.remove()
		}
		return man, true, err
	}
	if err := f.readParts(); err != nil {
		return nil, false, err
	}
	held, err := lock.Acquire(filepath.Join(f.dir, "finish"))
	if errors.Is(err, lock.ErrHeld) {
		return nil, false, retry{fmt.Errorf("%s: another process is finishing this conversion: wait until it ends (%w)", f.dir, err)}
	}
	if err != nil && !lock.None(err) {
		return nil, false, err
	}
	defer held.Close()
	c.leftOut, c.opt.Card = c.Model.Leftovers(o.Folder.Keep), o.Card
	if c.previous, err = plan.Previous(c.Model); err != nil {
		return nil, false, err
	}
	man = plan.NewManifest(p, o.Folder)
	man.LeftOut, man.Previous = c.leftOut, c.previous
	if man.Shards, err = c.await(ctx, f, o.Patience); err != nil {
		return nil, false, err
	}
	return man, false, c.publish(ctx, f, man)
}

// readParts reads the number of parts.
func (f *partsFolder) readParts() error {
	was, err := f.begun()
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: no part has been started there: run the parts first, with --part", f.dir)
	}
	f.Parts = was.Parts
	return errors.Join(err, Part{1, f.Parts}.Check())
}

// await checks all shards, and looks again for files that may only not be visible yet.
func (c *conversion) await(ctx context.Context, f *partsFolder, patience int) ([]plan.Shard, error) {
	for wait := 100 * time.Millisecond; ; wait *= 2 {
		shards, err := c.checkParts(ctx, f)
		var parts *PartsError
		if patience--; patience < 0 || !errors.As(err, &parts) || !parts.late {
			return shards, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// checkParts checks all shards, and returns their records in the order of the model.
func (c *conversion) checkParts(ctx context.Context, f *partsFolder) ([]plan.Shard, error) {
	of, files := c.divide(f.Parts), c.Model.Files()
	shards, errs := make([]plan.Shard, len(files)), make([]error, len(files))
	f.refresh()
	err := parallel.Run(ctx, len(files), c.opt.Workers, func(ctx context.Context, i int) error {
		r, err := f.check(ctx, filepath.Base(files[i].Path), c.result().Files()[i], of[i])
		if err == nil && files[i] == c.Model.Adapter { // the plan does not identify it
			var now string
			if now, err = digestFile(ctx, files[i].Path, func(int) {}); err == nil && now != r.Source {
				err = errors.New("was made of another adapter than the model has now")
			}
		}
		if err == errNoRecord {
			err = f.unwritten(of[i])
		}
		if errs[i] = err; err == nil {
			shards[i] = r.Shard
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	wrong := &PartsError{Dir: f.dir, Of: f.Parts, late: true, again: true}
	for i, err := range errs {
		if err == nil {
			continue
		}
		wrong.Parts = append(wrong.Parts, of[i])
		wrong.again = wrong.again && err == errNotVisible
		wrong.late = wrong.late && (err == errNotVisible || err == errNoRecord)
		if len(wrong.Reasons) < mostReasons {
			wrong.Reasons = append(wrong.Reasons, fmt.Errorf("part %v: %s: %w", Part{of[i], f.Parts}, f.result(filepath.Base(files[i].Path)), err))
		}
	}
	if wrong.Parts == nil {
		return shards, f.onlyKnown(c.Model)
	}
	slices.Sort(wrong.Parts)
	wrong.Parts = slices.Compact(wrong.Parts)
	return nil, wrong
}

// onlyKnown returns an error if the folder of results holds a file that no part and no earlier Finish can have written.
func (f *partsFolder) onlyKnown(m *weights.Model) error {
	dir := filepath.Join(f.dir, resultName)
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		if of, ok := atomicfile.IsPartial(name); ok && of == plan.ManifestName { // of a killed call
			return os.Remove(path)
		}
		shard := slices.ContainsFunc(m.Files(), func(file *weights.File) bool { return filepath.Base(file.Path) == name })
		if shard || name == plan.ManifestName || name == card.Name || slices.Contains(m.Others, name) {
			return nil
		}
		return fmt.Errorf("%s: is not a file of this conversion: move it away and finish again", path)
	})
}

// publish adds everything but the shards to the folder of results, and renames it.
func (c *conversion) publish(ctx context.Context, f *partsFolder, man *plan.Manifest) error {
	st := &stage{dir: filepath.Join(f.dir, resultName), out: f.out, sizes: map[string]int64{}}
	if !c.Model.Single {
		if err := likeFolder(st.dir, c.Model.Dir); err != nil {
			return err
		}
	}
	for _, s := range man.Shards {
		if err := st.complete(s.File); err != nil {
			return err
		}
	}
	if err := c.indexOf(st); err != nil {
		return err
	}
	if err := c.copyOthers(ctx, st); err != nil {
		return err
	}
	if err := c.writeCard(ctx, st); err != nil {
		return err
	}
	var err error
	if man.Files, err = st.record(ctx, man.Shards); err != nil {
		return err
	}
	js, err := man.Encode()
	if err != nil {
		return err
	}
	if err := atomicfile.Write(st.path(plan.ManifestName), js); err != nil {
		return err
	}
	if err := errors.Join(st.whole(), atomicfile.SyncFolder(st.dir)); err != nil {
		return err
	}
	if err := atomicfile.RenameNew(st.dir, st.out); err != nil {
		return err
	}
	if err := atomicfile.SyncFolder(filepath.Dir(st.out)); err != nil {
		return err
	}
	return f.remove()
}

// indexOf makes an index of the shards' headers, if the result has other tensors than the model.
func (c *conversion) indexOf(st *stage) error {
	for i, f := range c.Model.Files() {
		w := &shardWriter{src: f, result: c.result().Files()[i]}
		s, err := weights.OpenFile(st.path(filepath.Base(f.Path)))
		if err != nil {
			return err
		}
		for _, t := range s.Tensors[len(w.result.Tensors):] {
			w.extras = append(w.extras, extra{info: t})
		}
		if err := s.Close(); err != nil {
			return err
		}
		c.shards = append(c.shards, w)
	}
	return c.extendIndex()
}
