package transform

import "math"

// trade is one budget for the whole model: a layer's share of the energy, what an error of its output
// costs in nats, and what may be had of it.
type trade struct {
	share       []float64 // of the energy of all layers
	sensitivity []float64 // nats for each unit of relative error
	curves      []curve
}

// offer is a point of every layer.
type offer struct {
	choice []int
	loss   float64 // predicted, nats
	energy float64 // predicted, relative
}

// at chooses where nats are worth price each of relative energy: a larger price spends more.
func (t *trade) at(price float64) offer {
	o := offer{choice: make([]int, len(t.curves))}
	for i, c := range t.curves {
		k := c.at(price * t.share[i] / t.sensitivity[i])
		o.choice[i] = k
		o.loss += t.sensitivity[i] * c[k].Error
		o.energy += t.share[i] * c[k].Energy
	}
	return o
}

// within is the best choice of predicted loss no more than most: the price is bisected.
func (t *trade) within(most float64) offer {
	low, high := -40.0, 20.0 // powers of two; at the lowest nothing is spent that can be told from none
	best := t.at(0)
	for range 60 {
		mid := (low + high) / 2
		if o := t.at(math.Exp2(mid)); o.loss <= most {
			best, low = o, mid
		} else {
			high = mid
		}
	}
	return best
}
