package probe

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/internal/spelling"
)

// Row is one line of a table of measurements: a GEMM that another program has measured.
type Row struct {
	Line    int // in the file
	Product cost.Product
	Weights pattern.Pattern
	// Joules and Seconds are of one execution. Watts is the mean power.
	Joules, Seconds, Watts float64
	Clock                  float64 // in MHz; 0: not known
	// Copy is true for the copy of the baseline that measure --csv writes. The copy shows how far equal weights differ. A fit
	// leaves it out.
	Copy bool
}

// Columns of a table of measurements, in any order. A table must have the columns of needed.
var (
	needed = []string{"pattern", "type", "shape", "role", "joules", "seconds"}
	spare  = []string{"watts", "clock_mhz", "cold"}
	// ignored are the columns of predict --csv and measure --csv that a fit does not use.
	ignored = []string{"relative_energy", "interval_low", "interval_high", "origin"}
)

// measuredCopy ends the pattern of the baseline's copy in a table of measure --csv.
const measuredCopy = " (copy)"

// DecodeRows is the largest M at which weights are assumed to come from memory, if a table has no column cold.
const DecodeRows = 64

// TableError is an error in a table of measurements. Its text names the file and, if known, the line.
type TableError struct {
	File string
	Err  error
}

func (e *TableError) Error() string { return e.Err.Error() }
func (e *TableError) Unwrap() error { return e.Err }

// ReadTable reads a table of measurements as CSV with a header. An error is a
// [*TableError] and names the file and, if known, the line and the column.
func ReadTable(name string, r io.Reader) ([]Row, error) {
	rows, err := readTable(name, r)
	if err != nil {
		return nil, &TableError{name, err}
	}
	return rows, nil
}

func readTable(name string, r io.Reader) ([]Row, error) {
	if r == nil {
		return nil, fmt.Errorf("%s: nothing to read a table from", name)
	}
	c := csv.NewReader(r)
	header, err := c.Read()
	if err != nil {
		if err == io.EOF {
			err = errors.New("the file is empty: begin with the header " + strings.Join(needed, ","))
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	at := map[string]int{}
	known := slices.Concat(needed, spare, ignored)
	for i, column := range header {
		column = strings.ToLower(strings.TrimSpace(strings.TrimPrefix(column, "\ufeff"))) // spreadsheets write a byte order mark
		if strings.Contains(column, ";") {
			return nil, fmt.Errorf("%s:1: semicolons separate the columns: separate the columns with commas", name)
		}
		if !slices.Contains(known, column) {
			return nil, fmt.Errorf("%s:1: unknown column %q%s; the columns are %s", name, column, spelling.DidYouMean("", column, known), strings.Join(slices.Concat(needed, spare), ", "))
		}
		if _, twice := at[column]; twice {
			return nil, fmt.Errorf("%s:1: column %s occurs twice: keep one", name, column)
		}
		at[column] = i
	}
	for _, column := range needed {
		if _, ok := at[column]; !ok {
			return nil, fmt.Errorf("%s:1: column %s is missing; a table needs %s", name, column, strings.Join(needed, ", "))
		}
	}
	var rows []Row
	for {
		cells, err := c.Read()
		if err == io.EOF {
			return rows, nil
		}
		if errors.Is(err, csv.ErrFieldCount) {
			line, _ := c.FieldPos(0)
			return nil, fmt.Errorf("%s:%d: %d cells, and the header has %d: quote patterns that contain a comma, as in \"normal(0,0.02)\"", name, line, len(cells), len(header))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err) // the error names the line
		}
		line, _ := c.FieldPos(0)
		row, column, err := readRow(cells, at)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: column %s: %w", name, line, column, err)
		}
		row.Line = line
		rows = append(rows, row)
	}
}

// readRow reads a line's cells. With an error it returns the column.
func readRow(cells []string, at map[string]int) (row Row, column string, err error) {
	cell := func(name string) string {
		column = name
		if i, ok := at[name]; ok {
			return strings.TrimSpace(cells[i])
		}
		return ""
	}
	text, isCopy := strings.CutSuffix(cell("pattern"), measuredCopy)
	row.Copy = isCopy
	if row.Weights, err = pattern.Parse(text); err != nil {
		return row, column, err
	}
	p := &row.Product
	if p.Type, err = arith.ParseType(cell("type")); err != nil {
		return row, column, err
	}
	if p.M, p.N, p.K, err = readShape(cell("shape"), p.Type); err != nil {
		return row, column, err
	}
	if p.Role, err = cost.ParseRole(cell("role")); err != nil {
		return row, column, err
	}
	for _, v := range []struct {
		name string
		to   *float64
	}{{"joules", &row.Joules}, {"seconds", &row.Seconds}, {"watts", &row.Watts}, {"clock_mhz", &row.Clock}} {
		text := cell(v.name)
		if text == "" && !slices.Contains(needed, v.name) {
			continue
		}
		if *v.to, err = strconv.ParseFloat(text, 64); err != nil || !(*v.to > 0) || math.IsInf(*v.to, 0) {
			return row, column, fmt.Errorf("%q: give a number above 0", text)
		}
	}
	mean := row.Joules / row.Seconds
	if !(mean > 0) || math.IsInf(mean, 0) {
		cell("joules")
		return row, column, fmt.Errorf("%g J in %g s is %g W: give joules and seconds of one execution", row.Joules, row.Seconds, mean)
	}
	if row.Watts == 0 {
		row.Watts = mean
	}
	if off := row.Watts/mean - 1; math.Abs(off) > 0.1 {
		cell("watts")
		return row, column, fmt.Errorf("%.4g W, and joules / seconds is %.4g W: give joules and seconds of one execution", row.Watts, mean)
	}
	p.Cold = p.M <= DecodeRows
	if text := cell("cold"); text != "" {
		if p.Cold, err = strconv.ParseBool(text); err != nil {
			return row, column, fmt.Errorf("%q: give true (weights from memory) or false", text)
		}
	}
	return row, "", nil
}

// readShape reads MxNxK.
func readShape(text string, t arith.Type) (m, n, k int, err error) {
	var sizes []int
	for part := range strings.SplitSeq(strings.NewReplacer("X", "x", "×", "x").Replace(text), "x") {
		size, err := strconv.Atoi(part)
		if err != nil {
			return 0, 0, 0, fmt.Errorf("%q: give M, N and K as in 8192x8192x8192", text)
		}
		sizes = append(sizes, size)
	}
	if len(sizes) != 3 {
		return 0, 0, 0, fmt.Errorf("%q: give M, N and K as in 8192x8192x8192", text)
	}
	m, n, k = sizes[0], sizes[1], sizes[2]
	return m, n, k, gemm.Problem{M: m, N: n, K: k, Type: t}.Validate()
}
