package predict

import (
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Coverage is the part of a model that predictions cover. Predictions leave out quantised weights whose values cannot
// be read.
type Coverage struct {
	// Share is the part of the bytes of linear layers and quantised weights that predictions cover, from 0 to 1.
	Share float64 `json:"share_of_bytes"`
	// Unread is the number of weights without a prediction.
	Unread int `json:"weights_not_read"`
	// Reason is why the values of the first such weight cannot be read.
	Reason string `json:"reason"`
}

// Coverages returns the coverage of each source, by the source's text. Sources with full coverage are left out.
func Coverages(set *operand.Set, sources ...operand.Source) (map[string]*Coverage, error) {
	all := map[string]*Coverage{}
	for _, s := range sources {
		m, layout, err := set.Model(s)
		if err != nil {
			return nil, err
		}
		if m == nil {
			continue
		}
		if c := CoverageOf(m, layout); c != nil {
			all[s.Text] = c
		}
	}
	return all, nil
}

// String returns a sentence about the coverage, for reports.
func (c *Coverage) String() string {
	unread := "1 quantised weight"
	if c.Unread != 1 {
		unread = fmt.Sprintf("%d quantised weights", c.Unread)
	}
	return fmt.Sprintf("the predictions cover %.0f %% of the bytes of linear layers and quantised weights: %s cannot be read (%s)", 100*c.Share, unread, c.Reason)
}

// CoverageOf returns the coverage of a model. It returns nil if predictions cover all weights. layout may be nil.
func CoverageOf(m *weights.Model, layout *arch.Layout) *Coverage {
	q, err := quant.Describe(m)
	if err != nil {
		return nil
	}
	var c Coverage
	var read, unread int64
	for _, w := range q.Weights {
		var bytes int64
		for _, t := range w.Tensors {
			bytes += t.Size()
		}
		reason := w.CanRead()
		switch {
		case reason != nil && !w.Plain():
			if c.Unread++; c.Unread == 1 {
				c.Reason = reason.Error()
			}
			unread += bytes
		case layout.IsLinearWeight(w):
			read += bytes
		}
	}
	if c.Unread == 0 {
		return nil
	}
	if q.Unknown != "" {
		c.Reason = q.Unknown
	}
	for _, t := range m.Infos() {
		if !q.Holds(t.Name) && layout.IsLinear(t) {
			read += t.Size()
		}
	}
	c.Share = float64(read) / float64(read+unread)
	return &c
}
