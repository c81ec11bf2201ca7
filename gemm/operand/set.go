package operand

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// Tokens of a product, its M, where nothing says otherwise: of prefill and of decode.
const (
	PrefillTokens = 8192
	DecodeTokens  = 16
)

// DefaultSize is N and K of patterns where no source has a shape of its own.
const DefaultSize = 8192

// Options say how operands are made. The zero value is ready to use.
type Options struct {
	// Type is what products are multiplied in. Default: as the weights are stored; BF16 for patterns.
	Type arith.Type
	// X is where activations come from. Of a source "PATH:" every layer takes the tensor of its own name.
	// Default: DefaultX of the type.
	X Source
	// Tokens is M. Default: as many as X has where X names tensors, else PrefillTokens.
	Tokens int
	// N and K are the outputs and inputs of patterns. Where a source has a shape of its own they must be
	// that one's. Default: the source's, or DefaultSize.
	N, K int
	// Streaming weights are the streamed operand, not the stationary one. Default: false.
	Streaming bool
	// Seed of all draws. Default: 0.
	Seed uint64
	// Family describes the models' architecture. Default: what the catalogue has for their config.json.
	Family *arch.Family
}

// XText is how the source of activations is written, the default's for products of type t where none was
// given.
func (o Options) XText(t arith.Type) string { return o.x(t).Text }

func (o Options) x(t arith.Type) Source {
	if o.X.Text == "" {
		return DefaultX(t)
	}
	return o.X
}

// Set makes layers and products. It opens every model once and draws activations once for all layers
// with as many inputs. Its methods may be called from several goroutines.
type Set struct {
	options Options

	mu     sync.Mutex
	models map[string]*model // by path
	xs     map[activations]*Matrix
}

// activations that layers share.
type activations struct {
	tensor   string // empty: a draw
	typ      arith.Type
	rows, in int
}

// model is one that a source names.
type model struct {
	*weights.Model
	own      bool         // opened here
	resolved bool         // layout was looked for
	layout   *arch.Layout // nil: of no known family
}

// NewSet gives an empty set. [Set.Close] closes what it opens.
func NewSet(o Options) *Set {
	return &Set{options: o, models: map[string]*model{}, xs: map[activations]*Matrix{}}
}

// Close closes the models that were opened; operands that lie in them must not be used after that.
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

// open gives the model that a source names.
func (s *Set) open(src Source) (*model, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.models[src.Path]; m != nil {
		return m, nil
	}
	m := &model{Model: src.model}
	var err error
	if m.Model == nil {
		if _, err := os.Stat(src.Path); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w", src.Path, ErrNoFile)
		}
		if m.Model, err = weights.Open(src.Path); err != nil {
			return nil, err
		}
		m.own = true
	}
	s.models[src.Path] = m
	return m, nil
}

// resolved is open for models whose layers are asked for.
func (s *Set) resolved(src Source) (*model, error) {
	m, err := s.open(src)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !m.resolved {
		if m.layout, err = arch.ResolveIfKnown(m.Model, s.options.Family); err != nil {
			return nil, err
		}
		m.resolved = true
	}
	return m, nil
}
