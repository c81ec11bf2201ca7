package synth

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// mostCodes bounds the codes in memory, in bytes. A larger weight is processed alone.
const mostCodes = 512 << 20

// fillQuantised writes the tensors of a quantised model. It writes the headers first and opens the files with package quant,
// which gives the places of codes and scales.
func (m *model) fillQuantised(ctx context.Context, tmp string, o Options, progress func(n int)) (err error) {
	files := map[string]*weights.Filling{}
	defer func() {
		for _, f := range files {
			if err != nil {
				f.Abort()
			}
		}
	}()
	for _, s := range m.shards {
		path := filepath.Join(tmp, s.file)
		if files[path], err = weights.Fill(path, s.head, s.size()); err != nil {
			delete(files, path)
			return err
		}
	}
	empty, err := weights.Open(tmp)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, empty.Close()) }()
	d, err := quant.Describe(empty)
	if err != nil {
		return err
	}
	f := &filler{model: m, d: d, seed: o.Seed, progress: progress, write: func(file string, b []byte, at int64) error {
		_, err := files[file].WriteAt(b, at)
		return err
	}}
	jobs, err := f.jobs(empty)
	if err != nil {
		return err
	}
	memory := semaphore.NewWeighted(mostCodes)
	err = parallel.Run(ctx, len(jobs), o.Workers, func(ctx context.Context, i int) error {
		size := min(jobs[i].memory, mostCodes)
		if err := memory.Acquire(ctx, size); err != nil {
			return err
		}
		defer memory.Release(size)
		return jobs[i].run()
	})
	if err != nil {
		return err
	}
	return parallel.Run(ctx, len(m.shards), len(m.shards), func(_ context.Context, i int) error {
		path := filepath.Join(tmp, m.shards[i].file)
		return files[path].Close()
	})
}

// filler writes tensors of one model.
type filler struct {
	*model
	d        *quant.Description
	seed     uint64
	write    func(file string, b []byte, at int64) error
	lock     sync.Mutex
	progress func(n int)
}

// job is the work on some rows of a tensor, or on a quantised weight.
type job struct {
	memory int64
	run    func() error
}

func (f *filler) store(file string, b []byte, at int64) error {
	err := f.write(file, b, at)
	f.lock.Lock()
	defer f.lock.Unlock()
	f.progress(len(b))
	return err
}

// jobs returns the work in the order of the files.
func (f *filler) jobs(m *weights.Model) (jobs []job, err error) {
	for i, s := range f.shards {
		path := m.Shards[i].Path
		plain := s
		plain.tensors = nil
		for _, info := range s.tensors {
			if !f.d.Holds(info.Name) {
				plain.tensors = append(plain.tensors, info)
			}
		}
		for b := range f.blocks(plain, f.seed) {
			jobs = append(jobs, job{int64(b.bytes()), func() error {
				data := make([]byte, b.bytes())
				b.tensor.fill(data, b.first, b.rows, make([]float32, b.tensor.cols))
				return f.store(path, data, b.tensor.info.Begin+int64(b.first*b.tensor.rowBytes()))
			}})
		}
	}
	for _, w := range f.d.Weights {
		info, ok := f.values[w.Name]
		if !ok {
			return nil, fmt.Errorf("the format %s needs a weight %q, which the model does not have", f.format, w.Name)
		}
		jobs = append(jobs, job{int64(info.Len()), func() error { return f.quantise(w, info) }})
	}
	return jobs, nil
}

// quantise writes the tensors of a quantised weight, whose values have the given name, type and shape.
func (f *filler) quantise(w *quant.Quantised, info weights.Info) error {
	m, err := w.New(info.Shape[0])
	if err != nil {
		return err
	}
	t := newTensor(info, linear, f.seed)
	if m.Group != nil {
		f.groups(m, info.Name)
	}
	value, _ := info.DType.Format()
	bits := make([]byte, t.rowBytes())
	f.format.Nearest(m, func(dst []float32, n int) {
		t.draw(dst, n)
		t.encode(bits, dst)
		value.Decode(dst, bits)
	})
	err = w.Encode(m, 0, func(part int, at int64, b []byte) error {
		return f.store(w.Tensors[part].File, b, w.Tensors[part].Begin+at)
	})
	if err != nil {
		return err
	}
	for _, part := range w.Tensors {
		if part.Role == quant.ActivationScale {
			if err := f.store(part.File, f.activationScale(part.Info), part.Begin); err != nil {
				return err
			}
		}
	}
	return nil
}

// groups sets the group index. Neighbouring inputs form a group; in formats that order inputs by activation, groups are random.
func (f *filler) groups(m *quant.Matrix, name string) {
	order := make([]int32, m.K)
	for k := range order {
		order[k] = int32(k)
	}
	if f.format.Ordered {
		rng := newStream(key(f.seed, name, "order"), 0)
		for k := m.K - 1; k > 0; k-- {
			other := int(rng.Uint64() % uint64(k+1))
			order[k], order[other] = order[other], order[k]
		}
	}
	for place, k := range order {
		m.Group[k] = int32(place / m.Block[1])
	}
}

// activationScale returns the bytes of a scale for activations up to about 8.
func (f *filler) activationScale(info weights.Info) []byte {
	values := logNormal(info.Len(), outputSpread, newStream(key(f.seed, info.Name, "values"), 0))
	for i := range values {
		values[i] *= float32(math.Ldexp(1, -6))
	}
	data := make([]byte, info.Size())
	encoders[info.DType](data, values)
	return data
}
