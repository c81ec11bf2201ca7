package hessian

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// Store provides the statistics of a model's linear layers. Several goroutines may use it.
type Store struct {
	dir    string
	index  *index
	inputs map[string]*indexed // by the names of the layers
}

func newStore(dir string, x *index) *Store {
	s := &Store{dir, x, map[string]*indexed{}}
	for i := range x.Inputs {
		for _, layer := range x.Inputs[i].Layers {
			s.inputs[layer] = &x.Inputs[i]
		}
	}
	return s
}

// Layers returns the names of the layers' weights, in the order of computation.
func (s *Store) Layers() []string {
	var all []string
	for _, in := range s.index.Inputs {
		all = append(all, in.Layers...)
	}
	return all
}

// Has reports whether the store has a layer; tensor is its weight's name. Tied heads and experts without tokens are not in the
// store.
func (s *Store) Has(tensor string) bool {
	_, ok := s.inputs[tensor]
	return ok
}

// Range returns the range of a layer's inputs; tensor is its weight's name. It returns false if Has does.
func (s *Store) Range(tensor string) (Range, bool) {
	in, ok := s.inputs[tensor]
	if !ok {
		return Range{}, false
	}
	return in.Range, true
}

// Input returns the name of a layer's input: the first layer that reads the input. tensor is the layer's weight.
func (s *Store) Input(tensor string) string {
	in, ok := s.inputs[tensor]
	if !ok {
		return tensor
	}
	return in.Layers[0]
}

// Read reads the Hessian H[K, K] of a layer with K inputs; tensor is its weight's name. The caller may
// change the matrix. A file that has changed since it was written is an error.
func (s *Store) Read(ctx context.Context, tensor string) (sgemm.Matrix, error) {
	in, ok := s.inputs[tensor]
	if !ok {
		return sgemm.Matrix{}, s.unknown(tensor)
	}
	m := sgemm.Dense(in.Width, in.Width, nil)
	if err := s.rows(ctx, in, func(i int) []float32 { return m.Row(i)[i:] }); err != nil {
		return sgemm.Matrix{}, err
	}
	mirror(m)
	return m, nil
}

// ReadTriangle is Read of the upper triangle, row by row without gaps.
func (s *Store) ReadTriangle(ctx context.Context, tensor string) ([]float32, error) {
	in, ok := s.inputs[tensor]
	if !ok {
		return nil, s.unknown(tensor)
	}
	data := make([]float32, in.Width*(in.Width+1)/2)
	rest := data
	return data, s.rows(ctx, in, func(i int) []float32 {
		row := rest[:in.Width-i]
		rest = rest[in.Width-i:]
		return row
	})
}

func (s *Store) unknown(tensor string) error {
	return fmt.Errorf("tensor %q: has no statistics in %s: give a linear layer of this model", tensor, s.dir)
}

// rows reads the rows of an input's triangle, in order, into the slices that row returns.
func (s *Store) rows(ctx context.Context, in *indexed, row func(i int) []float32) error {
	want := header{fileFormat, s.index.Key, in.input}
	fits := func(h header) bool { return reflect.DeepEqual(h, want) }
	_, err := readTriangle(ctx, filepath.Join(s.dir, in.File), fits, func(i int, raw []byte) {
		to := row(i)
		for j := range to {
			to[j] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*j:]))
		}
	})
	if errors.Is(err, errDamaged) {
		err = fmt.Errorf("%w: remove the folder %s, so that its statistics are collected again", err, s.dir)
	}
	return err
}
