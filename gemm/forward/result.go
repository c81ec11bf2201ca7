package forward

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// DefaultKeptBytes is the default of [Keep].Bytes: 1 GiB.
const DefaultKeptBytes = 1 << 30

// Keep selects the results that a pass keeps for later comparisons. The state after the last block and the losses are
// always kept. Results that are not kept are computed again when needed, with the same bits.
type Keep struct {
	// Entries is the number of sequences, counted from the first, whose states before each block are
	// kept. Default 0: none.
	Entries int
	// Bytes limits the memory of the entries and, separately, the memory of the logits. The logits are kept if tokens ×
	// vocabulary × 4 bytes are within the limit. Default 0: [DefaultKeptBytes]. Negative: nothing is kept.
	Bytes int64
}

func (k Keep) fits(rows, cols int) bool {
	limit := k.Bytes
	if limit == 0 {
		limit = DefaultKeptBytes
	}
	return 4*int64(rows)*int64(cols) <= limit
}

// Result is the result of a complete pass. It is the reference for comparisons with other weights.
type Result struct {
	// End is the state after the last block. It is read-only.
	End *State
	// Scores are the losses of all predicted tokens.
	Scores *Scores

	weights Weights      // weights of the pass, read again for the head if the logits were not kept
	logits  sgemm.Matrix // [tokens, vocabulary]; no data if they were not kept
	logSums []float64    // log Σ exp of each row of the logits; nil if they were not kept
	entries []*State     // states of some sequences before each block; nil if they were not kept
}

// First returns the result of only the first n sequences. It has the same bits as a pass of these sequences, and shares
// r's memory.
func (r *Result) First(n int) *Result {
	part := &Result{End: r.End.first(n), Scores: &Scores{r.Scores.Nats[:n:n]}, weights: r.weights}
	if rows := part.End.Hidden.Rows; r.logSums != nil {
		part.logits, part.logSums = r.logits.Slice(0, rows, 0, r.logits.Cols), r.logSums[:rows:rows]
	}
	if len(r.entries) > 0 && n <= len(r.entries[0].Tokens) {
		for _, s := range r.entries {
			part.entries = append(part.entries, s.first(n))
		}
	}
	return part
}

// Entry returns a copy of the state before a block. The head counts as the last block. It returns nil unless the states
// of all sequences were kept.
func (r *Result) Entry(block int) *State {
	if block == r.End.Next {
		return r.End.Clone()
	}
	if block >= len(r.entries) || len(r.entries[block].Tokens) != len(r.End.Tokens) {
		return nil
	}
	return r.entries[block].Clone()
}

// referenceLogits provides the logits of a result, chunk by chunk. Logits that were not kept are computed again.
type referenceLogits struct {
	*Result
	output *output      // nil if the logits were kept
	x      sgemm.Matrix // inputs of the current batch
}

func (d *Decoder) referenceLogits(ctx context.Context, r *Result) (l *referenceLogits, err error) {
	l = &referenceLogits{Result: r}
	if r.logSums == nil {
		l.output, err = d.loadOutput(ctx, r.weights, r.End, nil)
	}
	return l, err
}

// chunk returns the reference's logits for the rows of c, a chunk of another state. logSum returns log Σ exp of row i.
func (l *referenceLogits) chunk(c chunk) (logits sgemm.Matrix, logSum func(i int) float64, err error) {
	if l.output == nil {
		sums := l.logSums[c.row:]
		return l.logits.Slice(c.row, c.row+c.logits.Rows, 0, l.logits.Cols), func(i int) float64 { return sums[i] }, nil
	}
	if c.from == 0 {
		if l.x, err = l.output.inputs(c.batch, l.End); err != nil {
			return logits, nil, err
		}
	}
	logits, err = l.output.logitsOf(l.x, c.from)
	return logits, func(i int) float64 { return logSumExp(logits.Row(i)) }, err
}
