package quantise

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Target is a model in a quantised format before its codes are chosen. Its files have the source's names and new headers.
// Unquantised tensors have the source's data, and tensors of quantised weights have none. A Target is valid until the source
// is closed.
type Target struct {
	*weights.Model
	Format      Format
	Description *quant.Description
	Left        []string // linear layers' weights that the format cannot hold and that stay unquantised
}

// NewTarget lays out a model in a format. The matrices of quantised weights (see [quant.Quantised.Make]) have the codes
// nearest to the source's values. With a nil family, NewTarget uses the embedded family for the config. It returns an error
// if the model is quantised already, has no config.json or no family, or if the format can hold none of its weights. leave is
// as in [TargetsOf].
func NewTarget(m *weights.Model, family *arch.Family, f Format, leave func(name string) bool) (*Target, error) {
	d, err := quant.Describe(m)
	switch {
	case !f.Converts:
		return nil, notConverted(f.Name)
	case err != nil:
		return nil, err
	case d.Any():
		return nil, weights.FileErrorf(m.Dir, "is quantised already (%s): give the unquantised model", d.Formats())
	case m.Config == nil:
		return nil, weights.FileErrorf(m.Dir, "has no config.json, which a quantised checkpoint needs: give a folder with a config.json, or a file in such a folder")
	case m.Adapter != nil:
		return nil, weights.FileErrorf(m.Adapter.Path, "is an adapter, and models with an adapter cannot be quantised: give a copy of the folder without the adapter")
	}
	if family == nil {
		if family, err = arch.Detect(m.Config); err != nil {
			return nil, weights.FileErrorf(m.Dir, "the layers to quantise are not known: %w", err)
		}
	}
	layout, err := arch.ResolveDescribed(m, family, d)
	if err != nil {
		return nil, err
	}
	targets, err := TargetsOf(layout, family, m.Infos(), leave)
	if err != nil {
		return nil, weights.FileErrorf(m.Dir, "%w", err)
	}
	if f, err = targets.Fit(f, m.Infos()); err != nil {
		return nil, weights.FileErrorf(m.Dir, "%w", err)
	}
	t := &Target{Format: f, Left: targets.Left}
	config, err := f.Config(m.Config, targets.Ignore)
	if err != nil {
		return nil, weights.FileErrorf(m.Dir, "%w", err)
	}
	if err := t.arrange(m, config, targets); err != nil {
		return nil, err
	}
	if t.Description, err = quant.Describe(t.Model); err != nil {
		return nil, err
	}
	return t, t.setMakers(m)
}

// setMakers sets Make of every quantised weight.
func (t *Target) setMakers(m *weights.Model) (err error) {
	fused := map[string][]weights.Tensor{}
	for _, w := range t.Description.Weights {
		source, ok := m.Tensor(w.Name)
		if !ok {
			return fmt.Errorf("the format %s needs a weight %q, which the model does not have", t.Format, w.Name)
		}
		fused[fusedWith(w.Name)] = append(fused[fusedWith(w.Name)], source)
	}
	largest := map[string]func() float32{}
	for key, list := range fused {
		largest[key] = sync.OnceValue(func() (most float32) {
			for _, t := range list {
				most = max(most, largestOf(t.Shape[0], t.Shape[1], rowsOf(t, 0)))
			}
			return most
		})
	}
	for _, w := range t.Description.Weights {
		source, _ := m.Tensor(w.Name)
		if w.Make, err = t.Format.maker(w, source, largest[fusedWith(w.Name)]); err != nil {
			return err
		}
	}
	return nil
}

// fusedWith returns the same text for all layers that runtimes fuse into one matrix with one global scale, such as the query,
// key and value projections of a block.
func fusedWith(weight string) string {
	module := strings.TrimSuffix(weight, ".weight")
	i := strings.LastIndexByte(module, '.') + 1
	for class, names := range map[string][]string{"qkv": {"q_proj", "k_proj", "v_proj", "query", "key", "value"}, "gate and up": {"gate_proj", "up_proj", "w1", "w3"},
		"qkv_a": {"q_a_proj", "kv_a_proj_with_mqa"}} {
		if slices.Contains(names, module[i:]) {
			return module[:i] + class
		}
	}
	return module
}

// rowsOf returns a function that decodes rows of a matrix, counted from a first row.
func rowsOf(t weights.Tensor, first int) func(dst []float32, n int) {
	f, _ := t.DType.Format()
	size := t.Shape[1] * t.DType.Bits() / 8
	return func(dst []float32, n int) { f.Decode(dst, weights.Need(t.Data[(first+n)*size:][:size])) }
}

// arrange makes the files of the target.
func (t *Target) arrange(m *weights.Model, config []byte, targets *Targets) error {
	model := *m
	model.Config, model.Shards = config, nil
	for _, file := range m.Shards {
		var infos []weights.Info
		for _, info := range file.Tensors {
			if !targets.Weights[info.Name] {
				infos = append(infos, info)
				continue
			}
			parts, err := t.Format.Tensors(info.Name, info.Shape[0], info.Shape[1], info.DType)
			if err != nil {
				return weights.FileErrorf(m.Dir, "%w", err)
			}
			infos = append(infos, parts...)
		}
		align(infos)
		arranged, err := weights.Arrange(file.Path, infos, file.Metadata, func(info weights.Info) []byte {
			if source, ok := file.Tensor(info.Name); ok && !targets.Weights[info.Name] {
				return source.Data
			}
			return nil
		})
		if err != nil {
			return err
		}
		model.Shards = append(model.Shards, arranged)
	}
	t.Model = &model
	return nil
}

// align orders tensors so that each begins at a multiple of its elements' size. Tensors whose size is a multiple of 8 bytes stay
// next to the other tensors of their weight; all others come last.
func align(infos []weights.Info) {
	last := func(i weights.Info) int {
		if i.Len()*i.DType.Bits()/8%8 == 0 {
			return 0
		}
		return 65 - i.DType.Bits() // wide elements first
	}
	slices.SortStableFunc(infos, func(a, b weights.Info) int { return cmp.Compare(last(a), last(b)) })
}

// maker returns the function that makes a weight's matrices from its values. largest is the largest magnitude for a global scale.
func (f Format) maker(w *quant.Quantised, source weights.Tensor, largest func() float32) (func(expert, first, n int) *quant.Matrix, error) {
	if _, err := w.New(0); err != nil {
		return nil, err
	}
	return func(_, first, n int) *quant.Matrix {
		m, _ := w.New(n) // the error was checked before
		if f.whole() {
			f.setWhole(m, largest())
		}
		step := max(1, blockValues/max(1, m.K*m.Block[0])) * m.Block[0]
		parallel.Do((n+step-1)/step, 0, func(i int) {
			from, to := i*step, min((i+1)*step, n)
			part := *m
			part.N, part.Codes = to-from, m.Codes[from*m.K:to*m.K]
			part.Scales = m.Scales[from/m.Block[0]*m.Columns():]
			part.Scales = part.Scales[:ceil(to-from, m.Block[0])*m.Columns()]
			if m.Zeros != nil {
				part.Zeros = m.Zeros[from/m.Block[0]*m.Columns():][:len(part.Scales)]
			}
			f.nearest(&part, rowsOf(source, first+from))
		})
		return m
	}, nil
}

// blockValues is the approximate number of values that a goroutine quantises at a time.
const blockValues = 1 << 20

// Check returns an error if a value of a quantised weight is NaN or infinite, because no code stands for such a value. It
// reads all values.
func (t *Target) Check(ctx context.Context, source *weights.Model, workers int) error {
	if ctx == nil {
		return parallel.ErrNoContext
	}
	return parallel.Run(ctx, len(t.Description.Weights), workers, func(ctx context.Context, i int) error {
		w, _ := source.Tensor(t.Description.Weights[i].Name)
		f, _ := w.DType.Format()
		return weights.Guard(w.File, func() error {
			weights.Need(w.Data)
			for at := range w.Len() {
				if !f.Finite(f.Elem(w.Data, at)) {
					return &weights.FormatError{File: w.File, Tensor: w.Name, Offset: -1, Msg: fmt.Sprintf("element %d is %v, which no code represents: leave this weight unquantised, or download the model again", at, f.Value(f.Elem(w.Data, at)))}
				}
			}
			return ctx.Err()
		})
	})
}
