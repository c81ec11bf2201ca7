package synth

import (
	"context"
	"iter"
	"path/filepath"
	"runtime"

	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
)

// Options are the options of [Folder]. The zero value is ready to use.
type Options struct {
	// Seed is the seed of the random numbers. Default 0.
	Seed uint64
	// ShardBytes is the largest size of a file's data in bytes. Default 2e9.
	ShardBytes int64
	// DType is the type of all floating-point tensors. Only matrices get an 8-bit type (F8_E4M3, F8_E5M2, I8), as in quantised
	// checkpoints. Default: the config's type.
	DType weights.DType
	// Format is the layout of a quantised checkpoint. Its codes are those nearest to the weights that the same Seed gives without
	// Format. The linear layers within blocks are quantised, except routers. Default: no weight is quantised.
	Format quantise.Format
	// Sparse leaves holes in the files, which take no disk space: one row in 128 of a matrix has values, and all other rows are
	// zero. Scales and tensors that are not matrices have all values. Format must be empty or FP8 in blocks.
	Sparse bool
	// Filled lists the files of a sparse model that have no holes, as numbers from 1. Default: none.
	Filled []int
	// Family gives the model's tensors. Default: the catalogue's family for the config.
	Family *arch.Family
	// Workers is the number of goroutines that generate. Default GOMAXPROCS.
	Workers int
	// Progress, if set, is called after each block with the bytes of tensor data written so far and in total, from one goroutine
	// at a time.
	Progress func(done, total int64)
}

// Folder writes a Hugging Face folder with random weights for the architecture of config, a config.json. dir must not exist.
// Folder writes the files to a temporary folder beside dir and makes them durable before it renames the folder. So dir
// appears complete or not at all. After an error, or if ctx ends, Folder removes the files. A killed process leaves
// .NAME.partial-PID, which the next call for dir removes.
//
// The same config, Seed, ShardBytes, DType and Format give the same bytes at any number of workers.
func Folder(ctx context.Context, config []byte, dir string, o Options) error {
	if ctx == nil {
		return parallel.ErrNoContext
	}
	if o.ShardBytes <= 0 {
		o.ShardBytes = 2e9
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	m, err := newModel(config, o)
	if err == nil {
		err = m.checkSparse(o)
	}
	if err != nil {
		return err
	}
	return stage(dir, func(tmp string) error { return m.write(ctx, tmp, o) })
}

// write puts all files into the folder tmp.
func (m *model) write(ctx context.Context, tmp string, o Options) error {
	var done, total int64
	for _, s := range m.shards {
		total += s.size()
	}
	progress := func(n int) {
		done += int64(n)
		if o.Progress != nil {
			o.Progress(done, total)
		}
	}
	files := append([]quantise.File{{Name: weights.ConfigName, Text: m.config}}, m.files...)
	if len(m.shards) > 1 {
		weightMap := map[string]string{}
		for _, s := range m.shards {
			for _, t := range s.tensors {
				weightMap[t.Name] = s.file
			}
		}
		files = append(files, quantise.File{Name: weights.IndexName, Text: weights.EncodeIndex(weightMap, total)})
	}
	for _, f := range files {
		if err := atomicfile.Write(filepath.Join(tmp, f.Name), f.Text); err != nil {
			return err
		}
	}
	if o.Sparse {
		if err := m.writeSparse(ctx, tmp, o, progress); err != nil {
			return err
		}
		return ctx.Err()
	}
	if m.format.Name != "" {
		if err := m.fillQuantised(ctx, tmp, o, progress); err != nil {
			return err
		}
		return ctx.Err()
	}
	for _, s := range m.shards {
		if err := m.writeShard(ctx, filepath.Join(tmp, s.file), s, o, progress); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (m *model) writeShard(ctx context.Context, path string, s shard, o Options, progress func(n int)) error {
	w, err := weights.Create(path, s.head, s.size())
	if err != nil {
		return err
	}
	err = pipeline(ctx, o.Workers, m.blocks(s, o.Seed), func(data []byte) error {
		n, err := w.Write(data)
		progress(n)
		return err
	})
	if err != nil {
		w.Abort()
		return err
	}
	return w.Close()
}

// blocks yields runs of rows of a shard's tensors, in the order of the file.
func (m *model) blocks(s shard, seed uint64) iter.Seq[*block] {
	return func(yield func(*block) bool) {
		for _, info := range s.tensors {
			t := newTensor(info, m.kinds[info.Name], seed)
			step := max(1, blockBytes/max(1, t.rowBytes()))
			for r := 0; r < t.rows; r += step {
				if !yield(&block{tensor: t, first: r, rows: min(step, t.rows-r)}) {
					return
				}
			}
		}
	}
}
