package forward

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// Start returns the state with the embeddings of sequences. See Check for the valid lengths. The state keeps the
// sequences.
func (d *Decoder) Start(ctx context.Context, w Weights, tokens [][]int32) (*State, error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	if err := d.Check(tokens); err != nil {
		return nil, err
	}
	e := d.Embedding
	table, err := d.table(ctx, w, e.Tokens, d.Vocab)
	if err != nil {
		return nil, err
	}
	var positions sgemm.Matrix
	if e.Positions != "" {
		if positions, err = d.table(ctx, w, e.Positions, e.PositionRows); err != nil {
			return nil, err
		}
	}
	norm, err := loadNorm(ctx, w, e.Norm)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, t := range tokens {
		n += len(t)
	}
	s := &State{Tokens: tokens, Hidden: sgemm.Dense(n, d.Hidden, nil)}
	row := 0
	for _, sequence := range tokens {
		for i, token := range sequence {
			h := s.Hidden.Row(row)
			copy(h, table.Row(int(token)))
			scale(h, e.Scale)
			if e.Positions != "" {
				addTo(h, positions.Row(e.Offset+i))
			}
			if !norm.Missing() {
				norm.row(h, h)
			}
			row++
		}
	}
	return s, ctx.Err()
}

// table returns a table with a row of the hidden size for each token or position.
func (d *Decoder) table(ctx context.Context, w Weights, name string, rows int) (sgemm.Matrix, error) {
	values, err := tensor(ctx, w, name, rows*d.Hidden)
	if err != nil {
		return sgemm.Matrix{}, err
	}
	return sgemm.Dense(rows, d.Hidden, values), nil
}
