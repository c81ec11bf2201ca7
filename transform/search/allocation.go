package search

import (
	"math"

	"github.com/lowtoggle/lowtoggle/internal/elementary"
)

// allocator distributes one budget over the layers. It has each layer's share of the energy, the divergence caused by
// an error of the layer's output, and the layer's rate–distortion curve.
type allocator struct {
	share       []float64 // of the energy of all layers; their sum is 1
	sensitivity []float64 // nats per token, per unit of the layer's relative error
	curves      []curve
}

// allocation is a choice for a whole model: one point of every layer's curve.
type allocation struct {
	choice []int   // number of the point, by layer
	loss   float64 // predicted divergence, nats per token
	energy float64 // predicted energy, relative to the source's
}

// at returns the allocation of least loss + lambda·energy. lambda is the loss, in nats per token, that is worth all
// energy. A larger lambda spends more.
func (t *allocator) at(lambda float64) allocation {
	o := allocation{choice: make([]int, len(t.curves))}
	for i, c := range t.curves {
		k := c.at(lambda * t.share[i] / t.sensitivity[i])
		o.choice[i] = k
		o.loss += float64(t.sensitivity[i] * c[k].Error)
		o.energy += float64(t.share[i] * c[k].Energy)
	}
	return o
}

// within returns the allocation of least energy with a predicted loss of at most most. It bisects lambda.
func (t *allocator) within(most float64) allocation {
	low, high := -40.0, 20.0 // exponents of lambda; at the lowest, almost nothing is spent
	best := t.at(0)
	for range 60 {
		mid := (low + high) / 2
		if o := t.at(elementary.Exp2(mid)); o.loss <= most {
			best, low = o, mid
		} else {
			high = mid
		}
	}
	return best
}

// most returns the largest predicted loss of an allocation: the loss of the last points of all curves.
func (t *allocator) most() (loss float64) {
	for i, c := range t.curves {
		loss += float64(t.sensitivity[i] * c[len(c)-1].Error)
	}
	return loss
}

// between returns the allocation of least energy with a predicted loss above low, below high, and at most aim. If
// there is none, the loss may be a little above aim. ok is false if no allocation lies between low and high.
func (t *allocator) between(low, aim, high float64) (a allocation, ok bool) {
	for range 60 {
		aim = math.Min(aim, math.Nextafter(high, 0))
		if o := t.within(aim); o.loss > low && o.loss < high {
			return o, true
		}
		aim = math.Sqrt(aim * high) // approaches high
	}
	return allocation{}, false
}
