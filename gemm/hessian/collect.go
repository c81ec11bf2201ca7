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
	"github.com/lowtoggle/lowtoggle/internal/lock"
	"github.com/lowtoggle/lowtoggle/internal/tally"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Options are the options of [Collect] and [CollectAndScore].
type Options struct {
	// Workers is the number of goroutines that add up products; the decoder has its own setting.
	// Default 0: all processors.
	Workers int
	// Key identifies the model and the tokens of a folder; see [Key]. Required.
	Key string
	// Progress is called after each of total steps: the blocks and the head. Default: not called.
	Progress func(done, total int)
	// Shared means that several processes with the same key use the folder. Statistics of another key are then an [ErrOther], and
	// are not removed.
	Shared bool
	// Waiting is called if another process is collecting statistics in the folder, before Collect waits for that process. Default:
	// not called.
	Waiting func()
}

// Collect runs tokens through a model, block by block, and writes the statistics of all linear layers to
// a folder. It makes the folder if there is none. Statistics of the same key are not computed again;
// those of another key are removed, unless the folder is [Options.Shared]. After an error, finished statistics stay for the next call.
// If another process is collecting in the folder, Collect waits for that process and uses its statistics. On file systems without
// locks, one process must have collected the statistics before others begin.
//
// An expert to which the router sends no token has no statistics.
//
// It is an error if inputs, or their squares, are not finite in float32. Other errors are those of [forward.Decoder].
func Collect(ctx context.Context, d *forward.Decoder, w forward.Weights, tokens [][]int32, dir string, o Options) (*Store, error) {
	return collect(ctx, d, tokens, dir, o, func(c *collection, blocks int) error {
		return c.partial(w, tokens, blocks)
	})
}

// CollectAndScore is Collect, and also returns the result of the pass: the reference of a divergence
// evaluator. The model runs over the tokens once, even if the folder has all statistics already.
func CollectAndScore(ctx context.Context, d *forward.Decoder, w forward.Weights, tokens [][]int32, dir string, keep forward.Keep, o Options) (s *Store, r *forward.Result, err error) {
	po := forward.PassOptions{Keep: keep, Step: func(done, total int) error { return o.step(done, total) }}
	s, err = collect(ctx, d, tokens, dir, o, func(c *collection, _ int) (err error) {
		with := po
		with.Observer, with.Step = c, func(done, total int) error {
			if err := c.close(); err != nil {
				return err
			}
			return po.Step(done, total)
		}
		r, err = d.Pass(ctx, w, tokens, with)
		return err
	})
	if err == nil && r == nil {
		r, err = d.Pass(ctx, w, tokens, po)
	}
	return s, r, err
}

func (o Options) step(done, total int) error {
	if o.Progress != nil {
		o.Progress(done, total)
	}
	return nil
}

// collect finds the statistics in the folder, or calls pass to run the first blocks of the model. The head
// counts as a block.
func collect(ctx context.Context, d *forward.Decoder, tokens [][]int32, dir string, o Options, pass func(c *collection, blocks int) error) (s *Store, err error) {
	if o.Key == "" {
		return nil, fmt.Errorf("%s: the key of the statistics is empty: give one that identifies the model and the tokens", dir)
	}
	x, err := o.known(dir)
	if err != nil {
		return nil, err
	}
	if x != nil && x.Key == o.Key {
		return newStore(dir, x), nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	unlock, err := lock.Wait(ctx, filepath.Join(dir, lockName), o.Waiting)
	if err != nil {
		return nil, err
	}
	defer func() {
		if failed := unlock(); err == nil && failed != nil {
			s, err = nil, failed
		}
	}()
	if x, err = o.known(dir); err != nil { // another process may have collected the statistics meanwhile
		return nil, err
	}
	if x != nil && x.Key == o.Key {
		return newStore(dir, x), nil
	}
	if x != nil { // remove the index before the files that it lists
		if err := os.Remove(filepath.Join(dir, indexName)); err != nil {
			return nil, err
		}
	}
	c := newCollection(ctx, d, tokens, dir, o)
	if x, err = c.run(pass); err != nil {
		var (
			file   *fs.PathError
			rename *os.LinkError
		)
		if errors.As(err, &file) || errors.As(err, &rename) {
			err = fmt.Errorf("%w: free disk space or make the folder writable, and run again; finished statistics stay in %s", err, dir)
		}
		return nil, err
	}
	return newStore(dir, x), nil
}

// ErrOther is the error for a shared folder with statistics of another key.
var ErrOther = errors.New("has calibration statistics of another model, other tokens or another kind of device: give the same model, tokens and kind of device to all parts of a search, or another folder to this search")

// lockName is the file that a collecting process locks.
const lockName = "lock"

// known reads the index of a folder; nil if there is none.
func (o *Options) known(dir string) (*index, error) {
	x, err := readIndex(dir)
	if err == nil && x != nil && x.Key != o.Key && o.Shared {
		return nil, weights.FileErrorf(dir, "%w", ErrOther)
	}
	return x, err
}

// collection is a folder without an index yet.
type collection struct {
	observer
	Options
	decoder *forward.Decoder
	layers  []forward.Layer
}

func newCollection(ctx context.Context, d *forward.Decoder, tokens [][]int32, dir string, o Options) *collection {
	c := &collection{Options: o, decoder: d, layers: d.Layers()}
	c.observer = observer{ctx: ctx, dir: dir, key: o.Key, workers: o.Workers, done: map[string]*indexed{}, open: map[string]*sum{}}
	if c.workers <= 0 {
		c.workers = runtime.GOMAXPROCS(0)
	}
	for _, sequence := range tokens {
		c.tokens += len(sequence)
	}
	return c
}

func (c *collection) run(pass func(c *collection, blocks int) error) (*index, error) {
	if err := c.resume(); err != nil {
		return nil, err
	}
	if n := c.missing(); n > 0 {
		if err := pass(c, n); err != nil {
			return nil, err
		}
	}
	return c.finish()
}

// resume finds the files of an earlier call, and removes those that cannot be used.
func (c *collection) resume() error {
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

// take reads a file of an earlier call. The error is errDamaged also for a file of another key.
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

// missing returns the number of blocks up to the last layer without statistics. The head counts as a block.
func (c *collection) missing() int {
	n := 0
	for _, l := range c.layers {
		if c.done[l.Tensor] == nil {
			n = l.Block + 1
		}
	}
	return n
}

// partial runs the first blocks of the model. The head counts as a block.
func (c *collection) partial(w forward.Weights, tokens [][]int32, blocks int) error {
	s, err := c.decoder.Start(c.ctx, w, tokens)
	if err != nil {
		return err
	}
	tally.Add(c.ctx, "forward.Pass", 1)
	for i := range blocks {
		if i < c.decoder.Blocks() {
			err = c.decoder.Block(c.ctx, i, w, s, c)
		} else {
			_, err = c.decoder.Score(c.ctx, w, s, c)
		}
		if err == nil {
			err = c.close()
		}
		if err == nil {
			err = c.step(i+1, blocks)
		}
		if err != nil {
			return err
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
			continue // no token was routed to this expert
		}
		if in == nil {
			return nil, fmt.Errorf("%s: the forward pass did not compute the inputs of %q, so the statistics in the folder are incomplete", c.dir, l.Tensor)
		}
		if in.Layers[0] == l.Tensor {
			x.Inputs = append(x.Inputs, *in)
		}
	}
	return x, x.write(c.dir)
}
