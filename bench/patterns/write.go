package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights"
)

// write makes the file path with one tensor for each pattern. It holds the base and one pattern in
// memory. After an error, or once ctx is done, there is no file.
func write(ctx context.Context, path string, rows, cols int, seed uint64) error {
	var infos []weights.Info
	for _, p := range patterns {
		infos = append(infos, weights.Info{Name: p.name, DType: weights.BF16, Shape: []int{rows, cols}})
	}
	head, placed, err := weights.EncodeHeader(infos, nil)
	if err != nil {
		return err
	}
	w, err := weights.Create(path, head, placed[len(placed)-1].End)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: remove it or name another file", path)
	}
	if err != nil {
		return err
	}
	b := newBase(rows, cols, seed)
	m := gemm.NewMatrix(weights.BF16, rows, cols)
	for _, p := range patterns {
		p.fill(m, b)
		if err = ctx.Err(); err == nil {
			_, err = w.Write(m.Data)
		}
		if err != nil {
			w.Abort()
			return err
		}
	}
	return w.Close()
}

// fill writes the pattern to m, which has the base's shape; the result does not depend on the
// number of processors that share the rows.
func (p pattern) fill(m gemm.Matrix, b base) {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for r := range m.Rows {
		g.Go(func() error {
			elem := p.row(b, r)
			for c := range m.Cols {
				bf16.SetElem(m.Data, r*m.Cols+c, elem(c))
			}
			return nil
		})
	}
	_ = g.Wait() // none of them fails
}
