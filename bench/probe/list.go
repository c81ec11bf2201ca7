package probe

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// WriteList writes the measurements of [Jobs] as a table for [ReadTable]. The columns joules and seconds are empty: another program
// measures and fills them. The first row of each type, shape and role has random weights.
func WriteList(w io.Writer, full bool) error {
	if w == nil {
		return errors.New("nowhere to write the list of patterns")
	}
	jobs, err := Jobs(full)
	if err != nil {
		return err
	}
	lines := [][]string{{"pattern", "type", "shape", "role", "cold", "joules", "seconds"}}
	for _, job := range jobs {
		p := productOf(job.Setup)
		add := func(pattern string) {
			lines = append(lines, []string{pattern, p.Type.String(), fmt.Sprintf("%dx%dx%d", p.M, p.N, p.K), p.Role.String(), strconv.FormatBool(p.Cold), "", ""})
		}
		add(job.Baseline.W.String())
		for _, point := range job.Points {
			add(point.W.String())
		}
	}
	return csv.NewWriter(w).WriteAll(lines)
}
