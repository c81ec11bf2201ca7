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

// Numbers of tokens (M of a product) in the phases of a workload. PrefillTokens is the default.
const (
	PrefillTokens = cost.PrefillTokens
	DecodeTokens  = cost.DecodeTokens
)

// DefaultSize is N and K of patterns if no source has a shape.
const DefaultSize = 8192

// Options are the options of [NewSet]. The zero value is ready to use.
type Options struct {
	// Type is the arithmetic of the products. Default: the type in which weights are stored; BF16 for patterns.
	Type arith.Type
	// X gives the activations. With "PATH:" every layer takes the tensor of its own name. Default: DefaultX of
	// the type.
	X Source
	// Tokens is M. Default: all tokens of X if X names tensors, else PrefillTokens.
	Tokens int
	// N and K are the outputs and inputs of patterns. If a source has a shape, N and K must equal it. Default:
	// the source's shape, or DefaultSize.
	N, K int
	// Streaming makes the weights the streamed operand of the kernel, not the stationary one. Default: false.
	Streaming bool
	// Seed is the seed of all patterns. Default: 0.
	Seed uint64
	// Quantised takes quantised layers, too, as the tensor cores read them; see [quant.Matrix.Operand]. Default: they are
	// left out.
	Quantised bool
	// Kernel is the assumed kernel of quantised layers, which determines the role of their weights. Default: the kernels that
	// vLLM runs on Hopper.
	Kernel cost.Kernel
	// OnCard is true for products for package cuda. Its dequantising kernels take four-bit weights in the same role as Kernel,
	// but always as the A operand with at most [gemm.FewTokens] tokens. Default: products are for predictions.
	OnCard bool
	// OpenURL opens a model in an object store; the set closes it. Default: such sources are an error.
	OpenURL func(url string) (*weights.Model, error)
	// Family describes the models' architecture. Default: the catalogue's family for their config.json.
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

// Set makes layers and products. It opens and resolves every model once. Layers with the same number of inputs
// share their activations. Its methods may be called from several goroutines.
type Set struct {
	options Options

	mu     sync.Mutex
	models map[any]*model // by path, or by the open model
	xs     map[activations]*Matrix
}

// activations that layers share.
type activations struct {
	tensor   string // empty: a draw
	typ      arith.Type
	rows, in int
}

// model is a model that a source names.
type model struct {
	*weights.Model
	own      bool         // opened by the set
	resolved bool         // layout was resolved
	layout   *arch.Layout // nil: of no known family

	quantised *quant.Description
	weights   *quant.Set
	codes     bool // quantised layers are taken, too
}

// NewSet returns an empty set. The caller must close it with [Set.Close].
func NewSet(o Options) *Set {
	return &Set{options: o, models: map[any]*model{}, xs: map[activations]*Matrix{}}
}

// Close closes the models that the set has opened. Their operands must not be used after that.
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
	if src.model != nil { // the path is not unique: single files of a folder share it
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
			return nil, fmt.Errorf("%s: can only be read from a disk here: copy the model to a disk, and name its folder", path)
		}
		return s.options.OpenURL(path)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, noFile(path)
	}
	return weights.Open(path)
}

// Model returns the model that a source names with its layout, which is nil if the family is not known. Both are nil for a
// source that names no model or a part of one.
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

// resolved returns the model of a source with its layout.
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
