package forward

import (
	"iter"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// State is the residual stream of some sequences between two blocks.
type State struct {
	// Tokens are the sequences. They are read-only.
	Tokens [][]int32
	// Hidden has one row per token, with the sequences in order.
	Hidden sgemm.Matrix
	// Next is the index of the next block to compute. After the last block it is Blocks().
	Next int
	// Step is the first step of the next block that has not been computed; see [Layer].
	Step int
}

// Clone returns an independent copy that shares the tokens.
func (s *State) Clone() *State {
	return &State{s.Tokens, sgemm.Dense(s.Hidden.Rows, s.Hidden.Cols, slices.Clone(s.Hidden.Data)), s.Next, s.Step}
}

// first returns the view of the first n sequences.
func (s *State) first(n int) *State {
	rows := 0
	for _, t := range s.Tokens[:n] {
		rows += len(t)
	}
	return &State{s.Tokens[:n:n], s.Hidden.Slice(0, rows, 0, s.Hidden.Cols), s.Next, s.Step}
}

// batchTokens limits the tokens of a batch, unless a single sequence is longer. With 2048 tokens, a product takes
// longer than reading the weights.
const batchTokens = 2048

// batch is some consecutive sequences.
type batch struct {
	first     int // index of the first sequence
	row       int // row of the first token
	rows      int
	sequences [][]int32
}

// batches yields the sequences in batches, in order.
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

// largestBatch returns the number of tokens of the largest batch.
func (s *State) largestBatch() int {
	n := 0
	for b := range s.batches() {
		n = max(n, b.rows)
	}
	return n
}

// hidden returns the batch's part of a state.
func (b batch) hidden(s *State) sgemm.Matrix {
	return s.Hidden.Slice(b.row, b.row+b.rows, 0, s.Hidden.Cols)
}
