package hessian

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
)

// Options say how inputs are collected.
type Options struct {
	// Workers is the number of goroutines that sum up; the decoder has its own. Default 0: all
	// processors.
	Workers int
	// Key identifies the model and the tokens, and is what a folder is recognised by. It must not be
	// empty.
	Key string
	// Progress, where set, is called after each of total blocks that are computed; the head is one.
	Progress func(done, total int)
}

// Collect runs tokens through a model, block by block, and leaves the inputs of all its linear
// layers in a folder, which is made where it does not exist. What the folder has of the same key is
// not computed again; what it has of another key is removed. After an error, what is finished stays
// there for the next call.
//
// An expert's inputs are those of the tokens that its router sends there; one that gets none has no
// inputs.
//
// It fails where inputs, or their squares, are not finite in float32, and where [forward.Decoder]
// does.
func Collect(ctx context.Context, d *forward.Decoder, w forward.Weights, tokens [][]int32, dir string, o Options) (*Store, error) {
	if o.Key == "" {
		return nil, fmt.Errorf("%s: there is no key to recognise inputs by: give one that identifies the model and the tokens", dir)
	}
	x, err := readIndex(dir)
	if err != nil {
		return nil, err
	}
	if x != nil && x.Key == o.Key {
		return newStore(dir, x), nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	if x != nil { // gone before the files are that it lists
		if err := os.Remove(filepath.Join(dir, indexName)); err != nil {
			return nil, err
		}
	}
	c := newCollection(ctx, d, tokens, dir, o)
	if x, err = c.run(w, tokens, o.Progress); err != nil {
		var (
			file   *fs.PathError
			rename *os.LinkError
		)
		if errors.As(err, &file) || errors.As(err, &rename) {
			err = fmt.Errorf("%w: mend this (free room, for one) and run again: what is finished stays in %s", err, dir)
		}
		return nil, err
	}
	return newStore(dir, x), nil
}

// collection is a folder that has no index yet.
type collection struct {
	observer
	decoder *forward.Decoder
	layers  []forward.Layer
}

func newCollection(ctx context.Context, d *forward.Decoder, tokens [][]int32, dir string, o Options) *collection {
	c := &collection{decoder: d, layers: d.Layers()}
	c.observer = observer{ctx: ctx, dir: dir, key: o.Key, workers: o.Workers, done: map[string]*indexed{}, open: map[string]*sum{}}
	if c.workers <= 0 {
		c.workers = runtime.GOMAXPROCS(0)
	}
	for _, sequence := range tokens {
		c.tokens += len(sequence)
	}
	return c
}

func (c *collection) run(w forward.Weights, tokens [][]int32, progress func(done, total int)) (*index, error) {
	if err := c.takeUp(); err != nil {
		return nil, err
	}
	if err := c.pass(w, tokens, progress); err != nil {
		return nil, err
	}
	return c.finish()
}

// takeUp finds the files that an earlier call left, and removes those that cannot be used.
func (c *collection) takeUp() error {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	layers := map[string]forward.Layer{}
	for _, l := range c.layers {
		layers[l.Tensor] = l
	}
	for _, e := range entries {
		path := filepath.Join(c.dir, e.Name())
		whole := strings.HasSuffix(path, fileSuffix)
		of, partial := atomicfile.IsPartial(e.Name())
		partial = partial && (of == indexName || strings.HasSuffix(of, fileSuffix))
		if !e.Type().IsRegular() || !whole && !partial {
			continue
		}
		if partial {
			err = errDamaged
		} else {
			err = c.take(e.Name(), layers)
		}
		if errors.Is(err, errDamaged) {
			err = os.Remove(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take reads a file of an earlier call; it is errDamaged, too, where it is another key's.
func (c *collection) take(name string, layers map[string]forward.Layer) error {
	fits := func(h header) bool {
		for _, tensor := range h.Layers {
			l := layers[tensor]
			if h.Width != l.Inputs || h.Tokens < 1 || h.Tokens > c.tokens || h.Tokens < c.tokens && !l.Routed {
				return false
			}
		}
		return h.Key == c.key && len(h.Layers) > 0 && fileName(h.Layers[0]) == name
	}
	h, err := readTriangle(c.ctx, filepath.Join(c.dir, name), fits, func(int, []byte) {})
	if err != nil {
		return err
	}
	for _, layer := range h.Layers {
		c.done[layer] = &indexed{name, h.input}
	}
	return nil
}

// pass runs the model up to the last layer that is missing.
func (c *collection) pass(w forward.Weights, tokens [][]int32, progress func(done, total int)) error {
	total := 0
	for _, l := range c.layers {
		if c.done[l.Tensor] == nil {
			total = l.Block + 1
		}
	}
	if total == 0 {
		return nil
	}
	d := c.decoder
	s, err := d.Start(c.ctx, w, tokens)
	if err != nil {
		return err
	}
	for i := range total {
		if i < d.Blocks() {
			err = d.Block(c.ctx, i, w, s, c)
		} else {
			_, err = d.Score(c.ctx, w, s, c)
		}
		if err == nil {
			err = c.close()
		}
		if err != nil {
			return err
		}
		if progress != nil {
			progress(i+1, total)
		}
	}
	return nil
}

// finish writes the index.
func (c *collection) finish() (*index, error) {
	x := &index{Format: indexFormat, Key: c.key}
	for _, l := range c.layers {
		in := c.done[l.Tensor]
		if in == nil && l.Routed {
			continue // no token got there
		}
		if in == nil {
			return nil, fmt.Errorf("%s: the forward pass has not shown the inputs of %q: the folder stays unfinished", c.dir, l.Tensor)
		}
		if in.Layers[0] == l.Tensor {
			x.Inputs = append(x.Inputs, *in)
		}
	}
	return x, x.write(c.dir)
}
