package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/lowtoggle/lowtoggle/internal/progress"
	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// Part is one of several parts of a conversion. Each part writes some of the shards, on any machine and in any order.
// [FinishParts] then makes the output from all shards.
type Part struct {
	Number int // from 1
	Of     int // number of parts
}

// MostParts is the largest number of parts.
const MostParts = 100_000

func (p Part) String() string { return fmt.Sprintf("%d/%d", p.Number, p.Of) }

// Check returns an error if the numbers are out of range.
func (p Part) Check() error {
	switch {
	case p.Of < 1 || p.Of > MostParts:
		return fmt.Errorf("the number of parts is %d: it must be from 1 to %d", p.Of, MostParts)
	case p.Number < 1 || p.Number > p.Of:
		return fmt.Errorf("there is no part %d: parts are numbered from 1 to %d", p.Number, p.Of)
	}
	return nil
}

// Divide assigns pieces to parts. It returns the part of each piece, from 1. sizes are the sizes of the pieces. In
// descending order of size, each piece goes to the part with the smallest total so far.
func Divide(sizes []int64, parts int) []int {
	order := make([]int, len(sizes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	of, load := make([]int, len(sizes)), make([]int64, min(parts, len(sizes)))
	for _, i := range order {
		least := 0
		for n := range load {
			if load[n] < load[least] {
				least = n
			}
		}
		of[i] = least + 1
		load[least] += max(1, sizes[i])
	}
	return of
}

// divide returns the part that writes each shard.
func (c *conversion) divide(parts int) []int {
	var sizes []int64
	for _, f := range c.result().Files() {
		sizes = append(sizes, f.Size())
	}
	return Divide(sizes, parts)
}

// PartOptions are the options of [RunPart] and [FinishParts].
type PartOptions struct {
	Workers  int                  // goroutines; required
	Version  string               // version of the program; all parts must have the same version
	Progress func(progress.Event) // nil: none; called from several goroutines
	Store    Store                // object store of out; nil: out is on a disk
	// Patience is the number of times that FinishParts waits for a written file that is not visible yet, as on some
	// shared file systems. The first wait is 0.1 s, and each further wait is twice as long.
	Patience int
	// Card and Folder are those of [Options]; FinishParts uses them.
	Card   CardFunc
	Folder plan.Folder
}

// PartDone is the result of [RunPart].
type PartDone struct {
	Shards  []plan.Shard // of this part
	Before  int          // number of Shards that earlier calls wrote
	Bytes   int64        // of the part's shards
	Whole   bool         // the output was finished before; nothing was done
	Partial string       // folder of the parts
}

// RunPart writes the shards of one part into out+".partial", and a record of each shard. Shards of earlier calls are
// kept. A shard appears in the folder when it is on the disk, so a killed call leaves no incomplete shard. The bytes
// of the shards are those of [Run].
//
// If two calls run the same part at a time, the second call gets an [ErrTemporary]. Errors of a full or vanished disk,
// errors of the network, and the end of ctx are an [ErrTemporary] too. Parts of another plan, version or number of
// parts in the same folder are errors.
func RunPart(ctx context.Context, src Source, p *plan.Plan, out string, part Part, o PartOptions) (*PartDone, error) {
	done, err := runPart(ctx, src, p, out, part, o)
	if err != nil {
		return nil, fmt.Errorf("part %v: %w", part, Temporary(err, filepath.Clean(out)+partialSuffix))
	}
	return done, nil
}

// room returns an error if a disk has too little room for n bytes.
func (f *partsFolder) room(n int64) error {
	if _, ok := f.place.(diskPlace); !ok {
		return nil
	}
	return checkRoom(f.dir, n)
}

func runPart(ctx context.Context, src Source, p *plan.Plan, out string, part Part, o PartOptions) (done *PartDone, err error) {
	if err := part.Check(); err != nil {
		return nil, err
	}
	c := &conversion{Source: src, plan: p, opt: Options{Workers: o.Workers, Progress: o.Progress}}
	if o.Progress == nil {
		c.opt.Progress = func(progress.Event) {}
	}
	f, err := newPartsFolder(out, o.Store, src.Model, p, part.Of, o.Version)
	if err != nil {
		return nil, err
	}
	if whole, err := f.finishedBefore(ctx); err != nil || whole != nil {
		return &PartDone{Whole: true}, err
	}
	if err := f.open(ctx); err != nil {
		return nil, err
	}
	work, err := f.work(part.Number)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	if whole, err := f.finishedBefore(ctx); err != nil || whole != nil { // in the time in which this call created the folder anew
		return &PartDone{Whole: true}, errors.Join(err, f.remove(ctx))
	}
	return c.writePart(ctx, f, work, part)
}

// writePart writes the shards of a part that have no valid record.
func (c *conversion) writePart(ctx context.Context, f *partsFolder, work work, part Part) (*PartDone, error) {
	done := &PartDone{Partial: f.dir}
	steps := plan.ByTensor(c.plan.Steps)
	var need int64
	for i, of := range c.divide(part.Of) {
		if of != part.Number {
			continue
		}
		model, result := c.Model.Files()[i], c.result().Files()[i]
		c.total += result.DataSize()
		r, err := f.check(ctx, filepath.Base(model.Path), result, part.Number)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			done.Shards = append(done.Shards, r.Shard)
			done.Before++
			done.Bytes += r.Bytes
			c.advance(result.DataSize())
			continue
		}
		w, err := c.compileShard(ctx, model, result, c.Weights.Tensors(i), steps)
		if err != nil {
			return nil, err
		}
		c.shards = append(c.shards, w)
		need += result.Size()
	}
	if err := f.room(need); err != nil {
		return nil, retry{err}
	}
	var closing errgroup.Group
	for _, w := range c.shards {
		out, err := w.write(ctx, work.create)
		if err = errors.Join(closing.Wait(), err); err != nil {
			if out.file != nil {
				out.file.Abort()
			}
			return nil, err
		}
		done.Shards = append(done.Shards, out.record)
		closing = errgroup.Group{}
		closing.Go(func() error {
			if err := out.file.Close(); err != nil {
				return err
			}
			size, err := f.add(ctx, work, out.record, out.head, part.Number)
			done.Bytes += size
			return err
		})
	}
	return done, closing.Wait()
}
