package reference

import "math"

// yarnSpeed returns YaRN's factor of the frequency of rotary pair i: 1 for pairs with many turns within the training
// length, 1/factor for pairs with less than one turn, and a ramp in between.
func (p *model) yarnSpeed(at string, theta float64, i, size int) float64 {
	length := p.number(at+"original_max_position_embeddings", p.number("max_position_embeddings", 2048))
	// pair returns the index of the pair with this number of turns.
	pair := func(turns float64) float64 {
		return float64(size) * math.Log(length/(turns*2*math.Pi)) / (2 * math.Log(theta))
	}
	first, last := pair(p.number(at+"beta_fast", 32)), pair(p.number(at+"beta_slow", 1))
	if p.is(at+"truncate", true) {
		first, last = math.Floor(first), math.Ceil(last)
	}
	first, last = max(first, 0), min(last, float64(size-1))
	if first == last {
		last += 0.001
	}
	ramp := min(max((float64(i)-first)/(last-first), 0), 1)
	return 1 - ramp + ramp/p.yarnFactor(at)
}

// yarnFactor returns the extension of the context relative to the training length.
func (p *model) yarnFactor(at string) float64 {
	length := p.number("max_position_embeddings", 2048)
	return p.number(at+"factor", length/p.number(at+"original_max_position_embeddings", length))
}

// yarnScale returns YaRN's factor of queries and keys.
func (p *model) yarnScale(at string) float64 {
	if p.field(at+"attention_factor") != nil {
		return p.number(at+"attention_factor", 1)
	}
	factor, q, all := p.yarnFactor(at), p.number(at+"mscale", 0), p.number(at+"mscale_all_dim", 0)
	if q == 0 || all == 0 {
		return yarnMagnitude(factor, 1)
	}
	return yarnMagnitude(factor, q) / yarnMagnitude(factor, all)
}

// yarnMagnitude grows with the logarithm of the factor.
func yarnMagnitude(factor, weight float64) float64 {
	if factor <= 1 {
		return 1
	}
	return 0.1*weight*math.Log(factor) + 1
}
