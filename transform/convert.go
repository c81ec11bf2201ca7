package transform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// ApplyOptions are what a plan is carried out with.
type ApplyOptions struct {
	Family   *arch.Family // nil: the catalogue's, by config.json
	Inputs   Inputs       // of the tokens that the plan was made with; needed where it has any
	Workers  int          // goroutines; default: all processors
	Resume   bool         // go on with what an interrupted call left behind
	Progress func(Event)  // nil: none; called from several goroutines
}

// Apply carries out a plan: it writes a new folder out with the model's tensors transformed, all
// other files of the model's folder, and [ManifestName]. The folder appears under its name whole
// or not at all.
//
// While it is made its parts lie in out+".partial". An error before a shard is finished removes
// that; a later error, a ctx that ends and a process that is killed leave it for a later call with
// Resume, which makes anew what was damaged since and ends with the same bytes. A plan for another model, an out that exists or lies inside the model's folder, and a
// disk without room are errors before anything is written.
func Apply(ctx context.Context, m *weights.Model, plan *Plan, out string, o ApplyOptions) (*Manifest, error) {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Progress == nil {
		o.Progress = func(Event) {}
	}
	if err := plan.CheckModel(m); err != nil {
		return nil, err
	}
	if err := plan.checkInputs(o.Inputs); err != nil {
		return nil, err
	}
	c := &conversion{model: m, plan: plan, opt: o}
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	if err := CheckOut(m, out, o.Resume); err != nil {
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
	model    *weights.Model
	plan     *Plan
	opt      ApplyOptions
	previous json.RawMessage
	shards   []*shardWriter
	index    []byte // rewritten index; nil where the source's stays
	written  int64
	total    int64 // bytes of tensor data to write
}

// prepare compiles all programs, and so finds every step that does not fit before anything is
// written.
func (c *conversion) prepare(ctx context.Context) error {
	layout, err := arch.Resolve(c.model, c.opt.Family)
	if c.plan.Model.Family == "" {
		layout, err = nil, nil
	}
	if err != nil {
		return err
	}
	if planned := c.plan.Model.Family; layout != nil && layout.Family != planned {
		return fmt.Errorf("%s: the plan was made for family %s, the model resolves as %s: give the same --arch", c.model.Dir, planned, layout.Family)
	}
	if c.plan.Moves() {
		if err := checkAdapters(c.model, layout); err != nil {
			return err
		}
	}
	comp, err := newCompiler(ctx, c.model, layout, c.plan.Steps)
	if err != nil {
		return err
	}
	comp.inputs = c.opt.Inputs
	if c.previous, err = previousManifest(c.model); err != nil {
		return err
	}
	steps := byTensor(c.plan.Steps)
	for _, f := range c.model.Files() {
		c.total += int64(len(f.Data()))
		w, err := c.compileShard(ctx, f, comp, steps)
		if err != nil {
			return err
		}
		c.shards = append(c.shards, w)
	}
	return c.extendIndex()
}

// compileShard compiles the programs of one shard's tensors, several at a time.
func (c *conversion) compileShard(ctx context.Context, f *weights.File, comp *compiler, steps map[string][]*Step) (*shardWriter, error) {
	w := &shardWriter{src: f, progs: map[string]*program{}, workers: c.opt.Workers, done: c.advance}
	progs := make([]*program, len(f.Tensors))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(c.opt.Workers)
	for i, info := range f.Tensors {
		g.Go(func() error {
			return weights.Guard(f.Path, func() (err error) {
				t, _ := f.Tensor(info.Name)
				if progs[i], err = comp.program(t, steps[t.Name]); err != nil {
					return err
				}
				return progs[i].checkExact(ctx)
			})
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for i, info := range f.Tensors {
		if !progs[i].identity() {
			w.progs[info.Name] = progs[i]
		}
		w.extras = append(w.extras, extrasOf(info, progs[i], steps[info.Name])...)
	}
	return w, nil
}

func extrasOf(t weights.Info, p *program, steps []*Step) []extra {
	var list []extra
	for _, s := range steps {
		if s.Shift != nil && s.Shift.Epilogue {
			outputs := p.rows
			if p.outAxis == 1 {
				outputs = p.cols
			}
			list = append(list, shiftExtra(t, outputs, s.Shift.Add))
		}
	}
	return list
}

// extendIndex adds the extra tensors to the model's index.
func (c *conversion) extendIndex() error {
	if c.model.Index == "" || !slices.ContainsFunc(c.shards, func(w *shardWriter) bool { return len(w.extras) > 0 }) {
		return nil
	}
	weightMap := map[string]string{}
	var total int64
	for _, w := range c.shards {
		if w.src == c.model.Adapter {
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
	for _, f := range c.model.Files() {
		n += f.Size()
	}
	for _, name := range c.model.Others {
		if st, err := os.Stat(filepath.Join(c.model.Dir, name)); err == nil {
			n += st.Size()
		}
	}
	return n
}

func (c *conversion) advance(bytes int64) {
	c.written += bytes
	c.opt.Progress(Event{Stage: "write", Done: c.written, Total: c.total})
}

// run fills the stage and gives it its name.
func (c *conversion) run(ctx context.Context, st *stage) (*Manifest, error) {
	if err := c.forgetAdapter(ctx, st); err != nil {
		return nil, err
	}
	if err := st.check(ctx, c.opt.Workers, func(done, total int64) { c.opt.Progress(Event{Stage: "check", Done: done, Total: total}) }); err != nil {
		return nil, err
	}
	man := &Manifest{Version: PlanVersion, DropIn: c.plan.DropIn, Plan: c.plan, Previous: c.previous}
	if err := c.writeShards(ctx, st, man); err != nil {
		return nil, err
	}
	if err := c.copyOthers(ctx, st); err != nil {
		return nil, err
	}
	js, err := man.encode()
	if err != nil {
		return nil, err
	}
	if err := writeFile(st.path(ManifestName), js); err != nil {
		return nil, err
	}
	return man, st.commit()
}

// writeShards writes the shards that are not finished yet. While one is still on its way to the
// disk, the next is computed.
func (c *conversion) writeShards(ctx context.Context, st *stage, man *Manifest) error {
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

// CheckOut refuses an output folder that exists or lies inside the model's folder, and one that an
// interrupted conversion left unfinished unless that is to be resumed, and then a folder of its name that is none. [Apply] calls it; callers
// that plan first may want to know before.
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
