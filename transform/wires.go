package transform

import (
	"fmt"
	"math/bits"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/weights"
)

// wire joins the places of an axis that follow one another on it: place i and place i+lag.
type wire struct {
	lag int
	// weight is the share of energy that goes with the bits that toggle, by i modulo laneRun.
	weight [laneRun]float64
}

// laneRun rows of a streaming operand follow one another, then the row 8 on from the first of them: runs
// take turns in two lanes (package cost, stepShares).
const laneRun = 4

// Shares of the power that depends on data, as fitted for BF16 (docs/cost.md, "Coefficients"): what toggles
// from one row of a streaming operand to the next, between bytes 64 apart in memory (the weights' half),
// and, where weights come from memory, between bytes 2 and 32 apart.
const (
	streamingShare = 0.40
	memoryShare    = 0.04
	nearShare      = 0.045
	farShare       = 0.052
)

// wires of an axis: rows of outputs, where they stream, follow one another in lanes; elements along
// memory follow those some bytes before. Whatever stands still costs by its bits, not by its neighbours.
func (u *use) wires(outAxis int, l cost.Workload, streams bool) (list []wire) {
	if u.axis == outAxis && streams && l.Prefill > 0 {
		s := l.Prefill * streamingShare
		list = append(list,
			wire{1, [laneRun]float64{0.7 * s, 1.4 * s, 0.7 * s, 0}},
			wire{5, [laneRun]float64{0, 0, 0, 1.2 * s}})
	}
	if u.axis == 1 {
		size := u.format.Bits / 8
		along := func(bytes int, share float64) {
			if lag := bytes / size; lag > 0 && share > 0 {
				list = append(list, wire{lag, [laneRun]float64{share, share, share, share}})
			}
		}
		along(64, l.Prefill*memoryShare)
		along(2, l.Decode*nearShare)
		along(32, l.Decode*farShare)
	}
	if u.blocks() {
		return besides(list)
	}
	return turned(list, u.positions[0][0])
}

// blocks reports whether labels are several neighbouring positions, such as the rows of a head.
func (u *use) blocks() bool {
	list := u.positions[0]
	return len(list) > 1 && list[1] == list[0]+1
}

// pull is what a bit costs that toggles on all of an axis' wires.
func pull(follow []wire) (sum float64) {
	for _, w := range follow {
		for _, v := range w.weight {
			sum += v / laneRun
		}
	}
	return sum
}

// besides are the wires of labels that are blocks: they meet at their borders.
func besides(list []wire) []wire {
	sum := pull(list)
	if sum == 0 {
		return nil
	}
	return []wire{{1, [laneRun]float64{sum, sum, sum, sum}}}
}

// turned are wires whose first place stands at a position.
func turned(list []wire, position int) []wire {
	for i := range list {
		from := list[i].weight
		for j := range from {
			list[i].weight[j] = from[(position+j)%laneRun]
		}
	}
	return list
}

// streamed is what is known of a shape: whether its outputs stream.
type streamed struct {
	dtype      weights.DType
	rows, cols int
	outAxis    int
}

// streams asks the cost model whether the outputs of a matrix of t's shape and type follow one another in
// the multipliers: whether it saves anything to make them alike in runs. Which operand streams depends on
// the type and on how many outputs there are, not on the role alone.
func (p *planner) streams(t weights.Tensor, f weights.Format, outAxis int) (bool, error) {
	key := streamed{dtype: t.DType, outAxis: outAxis}
	key.rows, key.cols = t.Matrix()
	if v, ok := p.streamed.Load(key); ok || p.opt.Workload.Prefill == 0 {
		return ok && v.(bool), nil
	}
	const band = 64
	rows := min(band, key.rows)
	w := cost.Weights{DType: t.DType, OutAxis: outAxis, Rows: key.rows, Cols: key.cols}
	energy := func(alike int) (float64, error) {
		data := make([]byte, rows*key.cols*f.Bits/8)
		for i := range rows * key.cols {
			n, k := i/key.cols, i%key.cols
			if outAxis == 0 {
				n -= n % alike
			} else {
				k -= k % alike
			}
			f.SetElem(data, i, f.FromValue(16*bell(uint64(n*key.cols+k))))
		}
		w.Bands = []cost.Band{{Data: data}}
		e, err := p.opt.Cost.Energy(p.ctx, w, p.opt.Role, cost.Workload{Prefill: 1})
		return e.Relative, err
	}
	loud, err := energy(1)
	if err != nil {
		return false, fmt.Errorf("%s: tensor %q: predicting energy: %w", t.File, t.Name, err)
	}
	quiet, err := energy(laneRun)
	const least = 0.01 // what a sample of an uncoupled role may show
	p.streamed.Store(key, loud-quiet > least)
	return loud-quiet > least, err
}

// bell is a number for i, spread like a normal one of variance 1/3.
func bell(i uint64) float32 {
	i = (i + 1) * 0x9E3779B97F4A7C15
	i = (i ^ bits.RotateLeft64(i, 29)) * 0xBF58476D1CE4E5B9
	i ^= i >> 32
	var sum float32
	for range 4 {
		sum += float32(int16(i)) / (1 << 16)
		i >>= 16
	}
	return sum
}
