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

// Cell formats a number for CSV, with eight digits.
func Cell(v float64) string { return strconv.FormatFloat(v, 'g', 8, 64) }

// CellOf formats a number for CSV; an unknown number is an empty cell.
func CellOf(v *float64) string {
	if v == nil {
		return ""
	}
	return Cell(*v)
}

// Ends formats the ends of an interval; without an interval both are empty.
func Ends(interval []float64) (low, high string) {
	if len(interval) != 2 {
		return "", ""
	}
	return Cell(interval[0]), Cell(interval[1])
}
