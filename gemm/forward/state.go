package forward

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// State is the residual stream of some sequences between two blocks.
type State struct {
	// Tokens are the sequences; read only.
	Tokens [][]int32
	// Hidden has a row for each token, sequence after sequence.
	Hidden sgemm.Matrix
	// Next is the next block to compute; Blocks() after the last.
	Next int
}

// Clone returns an independent copy. The tokens are shared.
func (s *State) Clone() *State {
	return &State{s.Tokens, sgemm.Dense(s.Hidden.Rows, s.Hidden.Cols, slices.Clone(s.Hidden.Data)), s.Next}
}

// first is the view of the first n sequences.
func (s *State) first(n int) *State {
	rows := 0
	for _, t := range s.Tokens[:n] {
		rows += len(t)
	}
	return &State{s.Tokens[:n:n], s.Hidden.Slice(0, rows, 0, s.Hidden.Cols), s.Next}
}

// batchTokens limits the tokens of a batch, unless a single sequence is longer. With so many tokens a product
// takes longer than reading the weight.
const batchTokens = 2048

// batch is some consecutive sequences.
type batch struct {
	first     int // sequence
	row       int // of the first token
	rows      int
	sequences [][]int32
}

// batches divides the sequences, in order.
func (s *State) batches() iter.Seq[batch] {
	return func(yield func(batch) bool) {
		b := batch{}
		for i, tokens := range s.Tokens {
			if b.rows > 0 && b.rows+len(tokens) > batchTokens {
				if !yield(b) {
					return
				}
				b = batch{first: i, row: b.row + b.rows}
			}
			b.rows += len(tokens)
			b.sequences = s.Tokens[b.first : i+1]
		}
		yield(b)
	}
}

// largestBatch is the number of tokens of the largest batch.
func (s *State) largestBatch() int {
	n := 0
	for b := range s.batches() {
		n = max(n, b.rows)
	}
	return n
}

// hidden is the batch's part of a state.
func (b batch) hidden(s *State) sgemm.Matrix {
	return s.Hidden.Slice(b.row, b.row+b.rows, 0, s.Hidden.Cols)
}

// Start looks up the embeddings of sequences; see [Decoder.Check] for their lengths. The state keeps the
// sequences.
func (d *Decoder) Start(ctx context.Context, w Weights, tokens [][]int32) (*State, error) {
	if err := d.Check(tokens); err != nil {
		return nil, err
	}
	table, err := d.table(ctx, w, d.embedding, d.vocab)
	if err != nil {
		return nil, err
	}
	var positions sgemm.Matrix
	if d.positions.table != "" {
		if positions, err = d.table(ctx, w, d.positions.table, d.positions.rows); err != nil {
			return nil, err
		}
	}
	norm, err := d.entry.load(ctx, w)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, t := range tokens {
		n += len(t)
	}
	s := &State{Tokens: tokens, Hidden: sgemm.Dense(n, d.hidden, nil)}
	row := 0
	for _, sequence := range tokens {
		for i, token := range sequence {
			h := s.Hidden.Row(row)
			copy(h, table.Row(int(token)))
			scale(h, d.scale)
			if d.positions.table != "" {
				addTo(h, positions.Row(d.positions.first+i))
			}
			if !norm.missing() {
				norm.apply(h, h)
			}
			row++
		}
	}
	return s, ctx.Err()
}

func (d *Decoder) table(ctx context.Context, w Weights, name string, rows int) (sgemm.Matrix, error) {
	values, err := tensor(ctx, w, name, rows*d.hidden)
	if err != nil {
		return sgemm.Matrix{}, err
	}
	return sgemm.Dense(rows, d.hidden, values), nil
}

// Check returns an error for sequences that Start refuses: empty ones, those with fewer than two tokens or more
// than the model has positions, and those with tokens outside the vocabulary.
func (d *Decoder) Check(tokens [][]int32) error {
	if len(tokens) == 0 {
		return fmt.Errorf("there are no sequences of tokens: give at least one")
	}
	for i, sequence := range tokens {
		switch {
		case len(sequence) < 2:
			return fmt.Errorf("sequence %d has %d tokens: give at least two, one to predict from and one to predict", i, len(sequence))
		case len(sequence) > d.limit:
			return fmt.Errorf("sequence %d has %d tokens, the model takes at most %d: cut it into shorter ones", i, len(sequence), d.limit)
		}
		for at, token := range sequence {
			if token < 0 || int(token) >= d.vocab {
				return fmt.Errorf("sequence %d, position %d: token %d is outside the vocabulary of %d: use tokens of this model's tokenizer", i, at, token, d.vocab)
			}
		}
	}
	return nil
}
