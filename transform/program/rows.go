package program

import (
	"context"
	"fmt"
)

// RowUnit returns the number of rows that share scales, if their codes and scales can be computed and stored without those of
// other rows; else 0.
func (p *Program) RowUnit() int {
	if p.coded == nil || !p.coded.alone() {
		return 0
	}
	return p.Source.Quantised.RowUnit()
}

// CodedRows are rows of an expert's result with their scales. Codes are computed when they are asked for.
type CodedRows struct {
	program   *Program
	recoder   *recoder
	expert, n int
	first     int
}

// CodedRows chooses the scales of rows [first, first+n) of an expert. first is a multiple of RowUnit, which is not 0.
func (p *Program) CodedRows(expert, first, n int) *CodedRows {
	return &CodedRows{p, p.rowsRecoder(expert, first, n), expert, n, first}
}

// StoreScales writes the scales as they are stored.
func (r *CodedRows) StoreScales(dst []byte) error { return r.store(nil, dst) }

// StoreCodes computes the codes and writes them as they are stored. One goroutine may call it at a time.
func (r *CodedRows) StoreCodes(dst []byte) error {
	codes, c := dst, r.recoder
	if len(dst) != r.n*r.program.Cols { // they are packed
		codes = make([]byte, r.n*r.program.Cols)
	}
	c.out.Codes = codes
	defer func() { c.out.Codes = nil }()
	if err := c.chooseAlone(context.Background(), 0, r.n, 1); err != nil {
		return err
	}
	return r.store(dst, nil)
}

func (r *CodedRows) store(codes, scales []byte) error {
	if err := r.program.Source.Quantised.EncodeRows(r.recoder.out, r.expert, r.first, codes, scales); err != nil {
		return fmt.Errorf("tensor %q: %w", r.program.Source.Name, err)
	}
	return nil
}
