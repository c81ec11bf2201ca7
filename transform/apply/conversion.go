// Package apply carries out a plan: it writes the converted folder. The folder is made under a temporary name
// beside a journal of what is finished ([Run] says how), and gets its own name when it is whole.
package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/internal/progress"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Source is what a plan is applied to. The compiler is that of the plan's steps.
type Source struct {
	Model    *weights.Model
	Weights  *quant.Set
	Compiler *program.Compiler
}

// Options are what a plan is applied with.
type Options struct {
	Workers  int                  // goroutines; required
	Resume   bool                 // go on with what an interrupted call left behind
	Progress func(progress.Event) // nil: none; called from several goroutines
}

// Run writes a new folder out with the source's tensors transformed, all other files of the model's folder, and
// [plan.ManifestName]. The folder appears under its name whole or not at all. The caller has checked out by
// CheckOut, and that the plan is the model's.
//
// While it is made its parts lie in out+".partial". An error before a shard is finished removes that; a later
// error, a ctx that ends and a process that is killed leave it for a later call with Resume, which makes anew
// what was damaged since and ends with the same bytes. A disk without room is an error before anything is
// written.
func Run(ctx context.Context, src Source, p *plan.Plan, out string, o Options) (*plan.Manifest, error) {
	if o.Progress == nil {
		o.Progress = func(progress.Event) {}
	}
	c := &conversion{Source: src, plan: p, opt: o}
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	st, err := openStage(out, c)
	if err != nil {
		return nil, err
	}
	manifest, err := c.run(ctx, st)
	if err != nil {
		return nil, st.fail(ctx, err)
	}
	return manifest, nil
}

// conversion is a plan compiled for a model.
type conversion struct {
	Source
	plan     *plan.Plan
	opt      Options
	previous json.RawMessage
	shards   []*shardWriter
	index    []byte // rewritten index; nil where the source's stays
	written  int64
	total    int64 // bytes of tensor data to write
}

// prepare compiles all programs, and so finds every step that does not fit before anything is written.
func (c *conversion) prepare(ctx context.Context) (err error) {
	if c.previous, err = plan.Previous(c.Model); err != nil {
		return err
	}
	steps := plan.ByTensor(c.plan.Steps)
	for i, f := range c.Model.Files() {
		c.total += int64(len(f.Data()))
		w, err := c.compileShard(ctx, f, c.Weights.Tensors(i), steps)
		if err != nil {
			return err
		}
		c.shards = append(c.shards, w)
	}
	return c.extendIndex()
}

// compileShard compiles the programs of the weights that have a part in one shard, several at a time.
func (c *conversion) compileShard(ctx context.Context, f *weights.File, places []quant.Place, steps map[string][]*plan.Step) (*shardWriter, error) {
	w := &shardWriter{src: f, places: places, workers: c.opt.Workers, done: c.advance, programs: make([]*program.Program, len(places))}
	err := parallel.Run(ctx, len(places), c.opt.Workers, func(ctx context.Context, i int) error {
		return weights.Guard(f.Path, func() error {
			p, err := c.Compiler.Program(ctx, places[i].Weight, steps[places[i].Weight.Name])
			if err != nil {
				return err
			}
			w.programs[i] = p
			return p.CheckExact(ctx)
		})
	})
	if err != nil {
		return nil, err
	}
	for i, place := range places {
		p := w.programs[i]
		if p.IsIdentity() {
			w.programs[i] = nil
		}
		for _, e := range p.Extras() {
			_, outputs := p.OutputAxis()
			w.extras = append(w.extras, newExtra(place.Tensor().Name+e.Suffix, outputs, e.Value))
		}
	}
	return w, nil
}

// extendIndex adds the extra tensors to the model's index.
func (c *conversion) extendIndex() error {
	if c.Model.Index == "" || !slices.ContainsFunc(c.shards, func(w *shardWriter) bool { return len(w.extras) > 0 }) {
		return nil
	}
	weightMap := map[string]string{}
	var total int64
	for _, w := range c.shards {
		if w.src == c.Model.Adapter {
			continue
		}
		shard := filepath.Base(w.src.Path)
		for _, t := range w.src.Tensors {
			weightMap[t.Name] = shard
			total += t.Size()
		}
		for _, e := range w.extras {
			weightMap[e.info.Name] = shard
			total += int64(len(e.data))
		}
	}
	c.index = weights.EncodeIndex(weightMap, total)
	return nil
}

// hasShard tells a shard's file name from others.
func (c *conversion) hasShard(name string) bool {
	return slices.ContainsFunc(c.shards, func(w *shardWriter) bool { return filepath.Base(w.src.Path) == name })
}

// size is how many bytes will be written.
func (c *conversion) size() int64 {
	var n int64
	for _, f := range c.Model.Files() {
		n += f.Size()
	}
	for _, name := range c.Model.Others {
		if st, err := os.Stat(filepath.Join(c.Model.Dir, name)); err == nil {
			n += st.Size()
		}
	}
	return n
}

func (c *conversion) advance(bytes int64) {
	c.written += bytes
	c.opt.Progress(progress.Event{Stage: "write", Done: c.written, Total: c.total})
}

// run fills the stage and gives it its name.
func (c *conversion) run(ctx context.Context, st *stage) (*plan.Manifest, error) {
	if err := c.forgetAdapter(ctx, st); err != nil {
		return nil, err
	}
	if err := st.check(ctx, c.opt.Workers, func(done, total int64) { c.opt.Progress(progress.Event{Stage: "check", Done: done, Total: total}) }); err != nil {
		return nil, err
	}
	man := &plan.Manifest{Version: plan.ManifestVersion, DropIn: c.plan.DropIn, Plan: c.plan, Previous: c.previous}
	if err := c.writeShards(ctx, st, man); err != nil {
		return nil, err
	}
	if err := c.copyOthers(ctx, st); err != nil {
		return nil, err
	}
	js, err := man.Encode()
	if err != nil {
		return nil, err
	}
	if err := atomicfile.Write(st.path(plan.ManifestName), js); err != nil {
		return nil, err
	}
	return man, st.commit()
}

// writeShards writes the shards that are not finished yet. While one is still on its way to the
// disk, the next is computed.
func (c *conversion) writeShards(ctx context.Context, st *stage, man *plan.Manifest) error {
	var closing errgroup.Group
	for _, w := range c.shards {
		name := filepath.Base(w.src.Path)
		if record, ok := st.finished[name]; ok {
			man.Shards = append(man.Shards, record)
			c.advance(int64(len(w.src.Data())))
			continue
		}
		out, err := w.write(ctx, st.path(name))
		if err = errors.Join(closing.Wait(), err); err != nil {
			if out.file != nil {
				out.file.Abort()
			}
			return err
		}
		man.Shards = append(man.Shards, out.record)
		closing = errgroup.Group{}
		closing.Go(func() error {
			if err := out.file.Close(); err != nil {
				return err
			}
			return st.finish(out.record)
		})
	}
	return closing.Wait()
}

// forgetAdapter drops what an interrupted conversion made of another adapter than lies beside the model
// now: a plan does not say which one it was.
func (c *conversion) forgetAdapter(ctx context.Context, st *stage) error {
	record, ok := st.finished[weights.AdapterName]
	if !ok || c.Model.Adapter == nil {
		return nil
	}
	sum, err := digestFile(ctx, c.Model.Adapter.Path, func(int) {})
	if err != nil || sum == record.Source {
		return err
	}
	delete(st.finished, weights.AdapterName)
	return os.Remove(st.path(weights.AdapterName))
}

// CheckOut refuses an output folder that exists or lies inside the model's folder, and one that an interrupted
// conversion left unfinished unless that is to be resumed, and then a folder of its name that is none.
func CheckOut(m *weights.Model, out string, resume bool) error {
	partial := filepath.Clean(out) + partialSuffix
	if _, err := os.Lstat(partial); err == nil {
		if !resume {
			return unfinished(partial)
		}
		if err := recognise(partial); err != nil {
			return err
		}
	}
	if _, err := os.Lstat(out); err == nil {
		return taken(out)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(filepath.Clean(out)))
	if err != nil {
		return err
	}
	dir, err := filepath.EvalSymlinks(m.Dir)
	if err != nil {
		return err
	}
	if parent, err = filepath.Abs(parent); err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if slices.Contains(m.Others, journalName) {
		return fmt.Errorf("%s: is an unfinished conversion itself: finish it first", m.Dir)
	}
	inside := parent == dir || strings.HasPrefix(parent+string(filepath.Separator), strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
	if inside && m.Others != nil { // a model given as a single file has no folder of its own
		return fmt.Errorf("%s: lies inside the model's folder %s: name a folder outside it", out, m.Dir)
	}
	return nil
}
