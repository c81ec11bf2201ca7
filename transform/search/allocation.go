package search

import "math"

// allocator divides one budget among the layers: a layer's share of the energy, what an error of its output costs
// in nats, and its rate–distortion curve.
type allocator struct {
	share       []float64 // of the energy of all layers
	sensitivity []float64 // nats for each unit of relative error
	curves      []curve
}

// allocation is a whole model: a point of every layer's curve.
type allocation struct {
	choice []int
	loss   float64 // predicted, nats
	energy float64 // predicted, relative
}

// at chooses where a relative energy of 1 is worth lambda nats: a larger lambda spends more.
func (t *allocator) at(lambda float64) allocation {
	o := allocation{choice: make([]int, len(t.curves))}
	for i, c := range t.curves {
		k := c.at(lambda * t.share[i] / t.sensitivity[i])
		o.choice[i] = k
		o.loss += t.sensitivity[i] * c[k].Error
		o.energy += t.share[i] * c[k].Energy
	}
	return o
}

// within is the best choice of predicted loss no more than most: lambda is bisected.
func (t *allocator) within(most float64) allocation {
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

// most is the predicted loss of the allocation that spends most: of the last point of every curve.
func (t *allocator) most() (loss float64) {
	for i, c := range t.curves {
		loss += t.sensitivity[i] * c[len(c)-1].Error
	}
	return loss
}

// between is the best choice of a predicted loss above low and below high, no more than aim or, where
// there is none, little more; false where there is none at all.
func (t *allocator) between(low, aim, high float64) (allocation, bool) {
	for range 60 {
		aim = math.Min(aim, math.Nextafter(high, 0))
		if o := t.within(aim); o.loss > low && o.loss < high {
			return o, true
		}
		aim = math.Sqrt(aim * high) // in the end high itself, but for rounding
	}
	return allocation{}, false
}
