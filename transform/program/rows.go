package program

import (
	"context"
	"fmt"
	"sync"
)

// RowUnit returns the number of rows that share scales. It returns 0 if codes and scales of these rows depend on
// other rows.
func (p *Program) RowUnit() int {
	if p.coded == nil || !p.coded.alone() || p.moved != nil {
		return 0
	}
	return p.Source.Quantised.RowUnit()
}

// CodedRows are rows of an expert's result with their scales. StoreCodes computes the codes. The source's codes are
// freed after the first tensor is stored: unpacked, they would use most of the memory while the other tensor waits
// for its turn.
type CodedRows struct {
	program   *Program
	expert, n int
	first     int

	mu      sync.Mutex
	recoder *recoder
	stored  bool
}

// CodedRows chooses the scales of rows [first, first+n) of an expert. first is a multiple of RowUnit. RowUnit must
// not be 0.
func (p *Program) CodedRows(expert, first, n int) *CodedRows {
	return &CodedRows{program: p, recoder: p.rowsRecoder(expert, first, n), expert: expert, n: n, first: first}
}

// StoreScales writes the scales in the layout of their tensor.
func (r *CodedRows) StoreScales(dst []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.forget()
	return r.store(nil, dst)
}

// StoreCodes computes the codes and writes them in the layout of their tensor.
func (r *CodedRows) StoreCodes(dst []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.forget()
	codes, c := dst, r.recoder
	if len(dst) != r.n*r.program.Cols { // codes are packed
		codes = make([]byte, r.n*r.program.Cols)
	}
	if r.stored {
		c.src.Codes = r.program.Source.Quantised.Rows(r.expert, r.first, r.n).Codes
	}
	c.out.Codes = codes
	if err := c.chooseAlone(context.Background(), 0, r.n, 1); err != nil {
		return err
	}
	return r.store(dst, nil)
}

// forget frees the codes of source and result.
func (r *CodedRows) forget() { r.recoder.src.Codes, r.recoder.out.Codes, r.stored = nil, nil, true }

func (r *CodedRows) store(codes, scales []byte) error {
	if err := r.program.Source.Quantised.EncodeRows(r.recoder.out, r.expert, r.first, codes, scales); err != nil {
		return fmt.Errorf("tensor %q: %w", r.program.Source.Name, err)
	}
	return nil
}
