package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/internal/progress"
	"github.com/lowtoggle/lowtoggle/transform/card"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// PartsError lists the parts that must run, or run again, before [FinishParts] can succeed.
type PartsError struct {
	Dir     string
	Of      int
	Parts   []int   // sorted
	Reasons []error // one for each of the first shards
	late    bool    // everything missing may only be invisible yet
	again   bool    // everything missing is recorded as written
}

// mostReasons is the largest number of shards that a [PartsError] explains.
const mostReasons = 8

func (e *PartsError) Error() string {
	var b strings.Builder
	for _, r := range e.Reasons {
		fmt.Fprintf(&b, "%v\n", r)
	}
	are := "are"
	if len(e.Parts) == 1 {
		are = "is"
	}
	fmt.Fprintf(&b, "%s: %d of %d parts %s missing or damaged: %s", e.Dir, len(e.Parts), e.Of, are, ranges(e.Parts))
	return b.String()
}

// Is makes errors.Is report [ErrTemporary] if the missing files may appear later.
func (e *PartsError) Is(target error) bool { return target == ErrTemporary && e.again }

// ranges formats sorted numbers as in "1, 3-5".
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

// FinishParts makes the output from the shards of all parts. It compares the shards' headers, sizes and records with
// the plan. It does not read the shards' data, except for the adapter and for files whose time has changed. Then it
// writes the model's other files, the index and the manifest, and renames the folder. before is true if an earlier
// call finished the output.
//
// If parts are missing or damaged, the error is a [PartsError].
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
	f, err := newPartsFolder(out, o.Store, src.Model, p, 0, o.Version)
	if err != nil {
		return nil, false, err
	}
	if man, err := f.finishedBefore(ctx); err != nil || man != nil {
		if err == nil { // the last call may have been killed before removing the parts
			err = f.remove(ctx)
		}
		return man, true, err
	}
	if err := f.readParts(ctx); err != nil {
		return nil, false, err
	}
	held, err := f.lockFinish()
	if err != nil {
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
	if err := c.indexOf(ctx, f); err != nil {
		return nil, false, err
	}
	if err := f.publish(ctx, c, man); err != nil {
		return nil, false, err
	}
	return man, false, f.remove(ctx)
}

// readParts reads the number of parts.
func (f *partsFolder) readParts(ctx context.Context) error {
	was, err := f.was(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: no part has been started there: run the parts first, with --part", f.dir)
	}
	f.Parts = was.Parts
	return errors.Join(err, Part{1, f.Parts}.Check())
}

// await checks all shards. For files that may become visible later, it repeats the check up to patience times.
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
		if err == nil && files[i] == c.Model.Adapter { // the plan does not identify the adapter
			var now string
			if now, err = c.digestSource(ctx, files[i], func(int) {}); err == nil && now != r.Source {
				err = errors.New("was made with another adapter than the model has now: run this part again")
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
			wrong.Reasons = append(wrong.Reasons, fmt.Errorf("part %v: %s: %w", Part{of[i], f.Parts}, f.path(filepath.Base(files[i].Path)), err))
		}
	}
	if wrong.Parts == nil {
		return shards, f.onlyKnown(ctx, c.Model)
	}
	slices.Sort(wrong.Parts)
	wrong.Parts = slices.Compact(wrong.Parts)
	return nil, wrong
}

// onlyKnown returns an error if the result has a file that neither a part nor an earlier FinishParts wrote.
func (f *partsFolder) onlyKnown(ctx context.Context, m *weights.Model) error {
	names, err := f.results(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		shard := slices.ContainsFunc(m.Files(), func(file *weights.File) bool { return filepath.Base(file.Path) == name })
		if !shard && name != plan.ManifestName && name != card.Name && !slices.Contains(m.Others, name) {
			return fmt.Errorf("%s: is not a file of this conversion: move the file away and finish again", f.path(name))
		}
	}
	return nil
}

// indexOf makes an index from the shards' headers if the result has other tensors than the model.
func (c *conversion) indexOf(ctx context.Context, f *partsFolder) error {
	for i, src := range c.Model.Files() {
		w := &shardWriter{src: src, result: c.result().Files()[i]}
		s, err := f.header(ctx, filepath.Base(src.Path))
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
