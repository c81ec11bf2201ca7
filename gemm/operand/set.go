package operand

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// PrefillTokens and DecodeTokens are the numbers of tokens (M of a product) in the phases of a workload. PrefillTokens
// is the default.
const (
	PrefillTokens = cost.PrefillTokens
	DecodeTokens  = cost.DecodeTokens
)

// DefaultSize is the default of N and K for patterns if no source has a shape.
const DefaultSize = 8192

// Options are the options of [NewSet]. The zero value is ready to use.
type Options struct {
	// Type is the arithmetic of the products. Default: the type of the stored weights, or BF16 for patterns.
	Type arith.Type
	// X gives the activations. With "PATH:" every layer uses the tensor with the layer's name. Default: DefaultX of the
	// type.
	X Source
	// Tokens is M. Default: all tokens of X if X names tensors, or else PrefillTokens.
	Tokens int
	// N and K are the numbers of outputs and inputs of patterns. If a source has a shape, N and K must equal it.
	// Default: the source's shape, or DefaultSize.
	N, K int
	// Streaming puts the weights into the streaming operand slot of the kernel instead of the stationary slot. Default:
	// false.
	Streaming bool
	// Seed is the seed of all patterns. Default: 0.
	Seed uint64
	// Quantised includes quantised layers in the form that the tensor cores read; see [quant.Matrix.Operand]. Default:
	// they are left out.
	Quantised bool
	// Kernel is the assumed kernel of quantised layers. It determines the role of their weights. Default: the kernels
	// that vLLM uses on Hopper.
	Kernel cost.Kernel
	// OnCard is true if package cuda will multiply the products. Its dequantising kernels take four-bit weights in the
	// same role as Kernel. With at most [gemm.FewTokens] tokens, they always take them as the A operand. Default:
	// products are for predictions.
	OnCard bool
	// OpenURL opens a model in an object store. The set closes the model. Default: a source in an object store is an
	// error.
	OpenURL func(url string) (*weights.Model, error)
	// Family describes the models' architecture. Default: the family in the catalogue for the models' config.json.
	Family *arch.Family
}

// XText returns the text of X, or of the default activations for products of type t.
func (o Options) XText(t arith.Type) string { return o.x(t).Text }

func (o Options) x(t arith.Type) Source {
	if o.X.Text == "" {
		return DefaultX(t)
	}
	return o.X
}

// Set builds layers and products. It opens and resolves every model once. Layers with the same number of inputs share
// their activations. Its methods may be called from several goroutines.
type Set struct {
	options Options

	mu     sync.Mutex
	models map[any]*model // by path, or by the open model
	xs     map[activations]*Matrix
}

// activations is the key of activations that layers share.
type activations struct {
	tensor   string // empty for values of a pattern
	typ      arith.Type
	rows, in int
}

// model is a model that a source names, with its layout.
type model struct {
	*weights.Model
	own      bool         // whether the set has opened the model
	resolved bool         // layout was resolved
	layout   *arch.Layout // nil if the family is unknown

	quantised *quant.Description
	weights   *quant.Set
	codes     bool // whether quantised layers are included
}

// NewSet returns an empty set. The caller must close it with [Set.Close].
func NewSet(o Options) *Set {
	return &Set{options: o, models: map[any]*model{}, xs: map[activations]*Matrix{}}
}

// Close closes the models that the set has opened. Their operands must not be used afterwards.
func (s *Set) Close() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, m := range s.models {
		if m.own {
			err = errors.Join(err, m.Close())
		}
		delete(s.models, path)
	}
	return err
}

// open returns the model of a source.
func (s *Set) open(src Source) (*model, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var key any = src.Path
	if src.model != nil { // the path is not unique, because single files of a folder share it
		key = src.model
	}
	if m := s.models[key]; m != nil {
		return m, nil
	}
	m := &model{Model: src.model}
	var err error
	if m.Model == nil {
		if m.Model, err = s.openPath(src.Path); err != nil {
			return nil, err
		}
		m.own = true
	}
	if err := m.Usable(); err != nil {
		return nil, err
	}
	s.models[key] = m
	return m, nil
}

func (s *Set) openPath(path string) (*weights.Model, error) {
	if weights.IsURL(path) {
		if s.options.OpenURL == nil {
			return nil, fmt.Errorf("%s: this command does not read object stores: copy the model to a disk and give its folder", path)
		}
		return s.options.OpenURL(path)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, noFile(path)
	}
	return weights.Open(path)
}

// Model returns the model that a source names and the model's layout, which is nil if the family is unknown. Both are
// nil for a source that does not name a whole model.
func (s *Set) Model(src Source) (*weights.Model, *arch.Layout, error) {
	if src.Path == "" || src.Tensors != "" {
		return nil, nil, nil
	}
	m, err := s.resolved(src)
	if err != nil {
		return nil, nil, err
	}
	return m.Model, m.layout, nil
}

// resolved returns the model of a source with its layout resolved.
func (s *Set) resolved(src Source) (*model, error) {
	m, err := s.open(src)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !m.resolved {
		if m.quantised, err = quant.Describe(m.Model); err != nil {
			return nil, err
		}
		if m.layout, err = arch.ResolveIfKnown(m.Model, s.options.Family); err != nil {
			return nil, err
		}
		m.weights, m.codes = quant.Group(m.Model, m.quantised), s.options.Quantised
		m.resolved = true
	}
	return m, nil
}
