// Package apply carries out a plan: it writes the converted folder. Files are written into a temporary folder, with a
// journal of the finished shards. The complete folder is renamed. [Run] has the details.
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
	"github.com/lowtoggle/lowtoggle/weights/quantise"
)

// Source is the model that a plan is applied to, with its weights and the compiler of the plan's steps.
type Source struct {
	Model    *weights.Model
	Weights  *quant.Set
	Compiler *program.Compiler
	Target   *quantise.Target // layout of the result; Weights are then its weights. nil: the model's layout
}

// check returns an error if something is missing.
func (s *Source) check(p *plan.Plan) error {
	switch {
	case s.Model == nil:
		return weights.ErrNoModel
	case p == nil:
		return fmt.Errorf("%w: no plan was given", plan.ErrInvalid)
	case s.Weights == nil:
		return fmt.Errorf("%s: the model's weights are missing: set Source.Weights", s.Model.Dir)
	}
	return nil
}

// result returns the headers of the result, except tensors that steps add.
func (s *Source) result() *weights.Model {
	if s.Target != nil {
		return s.Target.Model
	}
	return s.Model
}

// Options are the options of [Run].
type Options struct {
	Workers  int                  // goroutines; required
	Resume   bool                 // continue an interrupted call
	Replace  *Made                // existing folder that out replaces; nil: out must be new or empty
	Progress func(progress.Event) // nil: none; called from several goroutines
	Store    Store                // object store of out; nil: out is on a disk
	Version  string               // version of the program; required with Store
	// Card returns the result's model card, given the source's (nil if there is none). nil: the source's card is
	// copied.
	Card   CardFunc
	Folder plan.Folder
}

// CardFunc makes a model card from the source's card. open opens the result before it appears under its name. The
// result then has all its files except the card and the manifest.
type CardFunc func(ctx context.Context, open func() (*weights.Model, error), source []byte) ([]byte, error)

// Run writes a new folder out with the transformed tensors, the other files of the model's folder, and the manifest
// [plan.ManifestName]. It returns the manifest. The folder appears whole or not at all. Before Run, the caller must
// check the folder with [CheckOut], and must check that the plan belongs to the model.
//
// Run writes into out+".partial". An error before the first shard is finished removes this folder. After a later
// error, the end of ctx or the end of the process, the folder stays. A call with Resume continues the folder, writes
// damaged shards again, and produces the same bytes.
//
// If the disk has too little room, Run fails before it writes anything. If there is an interrupted conversion and
// Resume is false, the error is an [ErrUnfinished]. Steps that do not fit the model are a [plan.ErrInvalid].
func Run(ctx context.Context, src Source, p *plan.Plan, out string, o Options) (*plan.Manifest, error) {
	if o.Progress == nil {
		o.Progress = func(progress.Event) {}
	}
	if o.Store != nil {
		return runStored(ctx, src, p, out, o)
	}
	c := &conversion{Source: src, plan: p, opt: o}
	if err := src.check(p); err != nil {
		return nil, err
	}
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
	previous json.RawMessage // manifest of the conversion that made the source; nil: none
	leftOut  []weights.Leftover
	shards   []*shardWriter
	index    []byte // rewritten index; nil: the source's index is copied
	written  int64  // bytes of tensor data so far
	total    int64  // bytes of tensor data to write
}

// prepare compiles all programs, so a step that does not fit is an error before anything is written.
func (c *conversion) prepare(ctx context.Context) (err error) {
	if c.previous, err = plan.Previous(c.Model); err != nil {
		return err
	}
	c.leftOut = c.Model.Leftovers(c.opt.Folder.Keep)
	steps := plan.ByTensor(c.plan.Steps)
	for i, f := range c.result().Files() {
		c.total += f.DataSize()
		w, err := c.compileShard(ctx, c.Model.Files()[i], f, c.Weights.Tensors(i), steps)
		if err != nil {
			return err
		}
		c.shards = append(c.shards, w)
	}
	return c.extendIndex()
}

// compileShard compiles, in parallel, the programs of the weights with a tensor in one shard.
func (c *conversion) compileShard(ctx context.Context, f, result *weights.File, places []quant.Place, steps map[string][]*plan.Step) (*shardWriter, error) {
	w := &shardWriter{src: f, result: result, places: places, workers: c.opt.Workers, done: c.advance, programs: make([]*program.Program, len(places))}
	err := parallel.Run(ctx, len(places), c.opt.Workers, func(ctx context.Context, i int) error {
		return weights.Guard(f.Path, func() error {
			p, err := c.Compiler.Program(ctx, places[i].Weight, steps[places[i].Weight.Name])
			if err != nil {
				return err
			}
			w.programs[i] = p
			if err := p.CheckExact(ctx); err != nil || p.HoldsResult() {
				return err
			}
			return p.Prepare(ctx, 1)
		})
	})
	if err != nil {
		return nil, err
	}
	for i, place := range places {
		p := w.programs[i]
		if !made(place) && (p.IsIdentity() || p.Coded() && !recoded(place, p.Moves())) {
			w.programs[i] = nil
		}
		for _, e := range p.Extras() {
			_, outputs := p.OutputAxis()
			w.extras = append(w.extras, newExtra(place.Tensor().Name+e.Suffix, outputs, e.Value))
		}
	}
	return w, nil
}

// made reports whether only the result has a tensor.
func made(place quant.Place) bool {
	q := place.Weight.Quantised
	return q != nil && q.Make != nil
}

// recoded reports whether a tensor of a quantised weight may change. Zero points and group indices change only if
// symmetries move codes.
func recoded(place quant.Place, moves bool) bool {
	switch place.Weight.Quantised.Tensors[place.Part].Role {
	case quant.Codes, quant.Scales:
		return true
	case quant.ZeroPoints, quant.GroupIndex:
		return moves
	}
	return false
}

// extendIndex makes a new index if the result has other tensors than the model.
func (c *conversion) extendIndex() error {
	if c.Model.Index == "" || c.Target == nil && !slices.ContainsFunc(c.shards, func(w *shardWriter) bool { return len(w.extras) > 0 }) {
		return nil
	}
	weightMap := map[string]string{}
	var total int64
	for _, w := range c.shards {
		if w.src == c.Model.Adapter {
			continue
		}
		shard := filepath.Base(w.src.Path)
		for _, t := range w.result.Tensors {
			weightMap[t.Name] = shard
			total += t.Size()
		}
		for _, e := range w.extras {
			weightMap[e.info.Name] = shard
			total += e.info.Size()
		}
	}
	c.index = weights.EncodeIndex(weightMap, total)
	return nil
}

// hasShard reports whether name is the file name of a shard.
func (c *conversion) hasShard(name string) bool {
	return slices.ContainsFunc(c.shards, func(w *shardWriter) bool { return filepath.Base(w.src.Path) == name })
}

// size estimates the number of bytes to write.
func (c *conversion) size() int64 {
	var n int64
	for _, f := range c.result().Files() {
		n += f.Size()
	}
	for _, name := range c.Model.Others {
		if c.leavesOut(name) {
			continue
		}
		if size, err := c.Model.FileSize(name); err == nil {
			n += size
		}
	}
	return n
}

func (c *conversion) advance(bytes int64) {
	c.written += bytes
	c.opt.Progress(progress.Event{Stage: "write", Done: c.written, Total: c.total})
}

// run fills the stage and renames it.
func (c *conversion) run(ctx context.Context, st *stage) (*plan.Manifest, error) {
	if err := c.check(ctx, st); err != nil {
		return nil, err
	}
	man := plan.NewManifest(c.plan, c.opt.Folder)
	man.LeftOut, man.Previous = c.leftOut, c.previous
	if err := c.writeShards(ctx, st, man); err != nil {
		return nil, err
	}
	if err := c.copyOthers(ctx, st); err != nil {
		return nil, err
	}
	if err := c.writeCard(ctx, st); err != nil {
		return nil, err
	}
	var err error
	if man.Files, err = st.record(ctx, man.Shards); err != nil {
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

// writeShards writes the unfinished shards. It computes the next shard while the previous one is flushed to the disk.
func (c *conversion) writeShards(ctx context.Context, st *stage, man *plan.Manifest) error {
	var closing errgroup.Group
	for _, w := range c.shards {
		name := filepath.Base(w.src.Path)
		if record, ok := st.finished[name]; ok {
			man.Shards = append(man.Shards, record)
			c.advance(w.result.DataSize())
			continue
		}
		out, err := w.write(ctx, st.createShard)
		w.programs = nil // also frees the values that they computed
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

// CheckOut returns an error if out cannot be the output folder for m:
//
//   - out exists, and is neither an empty folder nor the folder old (nil: none);
//   - old is not the folder out, or has changed since it was opened;
//   - out lies inside the model's folder or inside the output of a conversion, or contains the model;
//   - the model's folder is an unfinished conversion, or has a file with a name that lowtoggle writes;
//   - another process is writing out+".partial": the error is an [ErrRunning];
//   - out+".partial" exists and resume is false: the error is an [ErrUnfinished];
//   - resume is true, and out+".partial" is not the folder of an interrupted conversion.
func CheckOut(m *weights.Model, out string, resume bool, old *Made) error {
	if m == nil {
		return weights.ErrNoModel
	}
	if out == "" {
		return outError{errors.New("OUT is missing: name the folder to write"), nil}
	}
	if old != nil {
		if err := old.replaces(out); err != nil {
			return err
		}
	}
	if weights.IsURL(out) {
		return CheckPlace(m, out)
	}
	partial := filepath.Clean(out) + partialSuffix
	if _, err := os.Lstat(partial); err == nil {
		if begunInParts(partial) {
			return fmt.Errorf("%s: this folder holds a conversion in parts: run its parts with --part and end with --finish, or move the folder away", partial)
		}
		if !resume {
			return inUse(partial)
		}
		if err := recognise(partial); err != nil {
			return err
		}
	}
	if err := checkFree(out, old); err != nil {
		return err
	}
	if old != nil {
		if err := checkReplaced(m, out); err != nil {
			return err
		}
	}
	return CheckPlace(m, out)
}

// CheckPlace returns an error if out lies inside the model's folder or the output of a conversion, or if the model has file
// names that a conversion writes.
func CheckPlace(m *weights.Model, out string) error {
	if m == nil {
		return weights.ErrNoModel
	}
	if slices.Contains(m.Others, journalName) {
		return weights.FileErrorf(m.Dir, "this model is an unfinished conversion: finish that conversion first")
	}
	if err := checkNames(m); err != nil {
		return err
	}
	if weights.IsURL(out) || !m.OnDisk() {
		if !m.Single && strings.HasPrefix(strings.TrimRight(out, "/")+"/", m.Dir+"/") {
			return inModel(out, m)
		}
		return nil
	}
	parent := filepath.Dir(filepath.Clean(out))
	within, err := filepath.EvalSymlinks(parent)
	if errors.Is(err, fs.ErrNotExist) {
		err = weights.FileErrorf(out, "%w", outError{fmt.Errorf("the parent folder %s does not exist: create it first", parent), fs.ErrNotExist})
	}
	if err != nil {
		return err
	}
	parent = within
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
	inside := parent == dir || strings.HasPrefix(parent+string(filepath.Separator), strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
	if inside && !m.Single { // a model given as a single file has no folder of its own
		return inModel(out, m)
	}
	return outsideOutputs(out, parent)
}

// outsideOutputs returns an error if parent, an absolute path, is the folder of a finished conversion or lies in one.
// A new folder there would not be part of the conversion, so verify would report the conversion as changed.
func outsideOutputs(out, parent string) error {
	for dir := parent; ; dir = filepath.Dir(dir) {
		if _, err := plan.ReadManifest(dir); err == nil {
			return weights.FileErrorf(out, "%w", outError{fmt.Errorf("lies inside %s, the output of a conversion, which must not change: choose a folder outside it", dir), nil})
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

func inModel(out string, m *weights.Model) error {
	return weights.FileErrorf(out, "%w", outError{fmt.Errorf("lies inside the model's folder %s: choose a folder outside it", m.Dir), nil})
}

// checkNames returns an error if a shard or a folder of the model has the name of a file that a conversion writes.
func checkNames(m *weights.Model) error {
	for _, name := range []string{plan.ManifestName, journalName} {
		path := m.Path(name)
		info, err := os.Lstat(path)
		folder := err == nil && info.IsDir() && !m.Single
		if folder || slices.ContainsFunc(m.Files(), func(f *weights.File) bool { return filepath.Base(f.Path) == name }) {
			return weights.FileErrorf(path, "lowtoggle writes a file of this name beside the weights: rename this file or folder")
		}
	}
	return nil
}
