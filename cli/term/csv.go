package term

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
)

// CSV prints a table of comma-separated values; the first row names the columns.
func CSV(w io.Writer, table [][]string) error {
	if err := csv.NewWriter(w).WriteAll(table); err != nil {
		return fmt.Errorf("CSV: %w", err)
	}
	return nil
}

// Cell writes a number for CSV, with eight digits.
func Cell(v float64) string { return strconv.FormatFloat(v, 'g', 8, 64) }

// CellOf is Cell of a number that may be unknown: then the cell is empty.
func CellOf(v *float64) string {
	if v == nil {
		return ""
	}
	return Cell(*v)
}

// Ends are the cells of an interval's ends; empty ones without an interval.
func Ends(interval []float64) (low, high string) {
	if len(interval) != 2 {
		return "", ""
	}
	return Cell(interval[0]), Cell(interval[1])
}
