package cost

import (
	"fmt"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"gonum.org/v1/gonum/mat"
)

// Rival is a simpler model of the same measurements, to hold the model against: a line through
// fewer features, by ordinary least squares.
type Rival struct {
	Name     string
	features []int
}

// Rivals are the obvious ones: what the first paper's Figure 8 shows (bits set, and bits that are
// alike in elements multiplied together), and plain counts of toggles.
var Rivals = []Rival{
	{"Hamming weight and alignment", []int{busOnes, bitAlignment}},
	{"toggles of both operands", []int{streamingToggles, stationaryToggles}},
}

// LeaveOutBy is LeaveOut by a rival.
func (c *Calibration) LeaveOutBy(r Rival, typ arith.Type, cold bool) []Judged {
	return c.judge(kind{typ, cold}, func(k kind, without string) (func(s, reference *Features) float64, error) {
		var rows, y []float64
		for i := range c.Series {
			s := &c.Series[i]
			for p := range s.Points {
				if o := &s.Points[p]; s.kind() == k && o.class() != without {
					rows, y = append(rows, terms(r.features, o.Features, s.Baseline.Features)...), append(y, c.Facts.Power.activity(s, o))
				}
			}
		}
		n := 1 + len(r.features)
		var c mat.VecDense
		if len(y) < n {
			return nil, fmt.Errorf("%d points are too few", len(y))
		}
		if err := c.SolveVec(mat.NewDense(len(y), n, rows), mat.NewVecDense(len(y), y)); err != nil {
			return nil, err
		}
		return func(s, reference *Features) (sum float64) {
			for i, v := range terms(r.features, s, reference) {
				sum += c.AtVec(i) * v
			}
			return sum
		}, nil
	})
}
