package forward

import (
	"math"
	"slices"
)

// routing chooses a token's experts.
type routing struct {
	used      int  // experts a token gets
	sigmoid   bool // scores are sigmoids, not a softmax
	normalize bool // weights sum to 1 before they are scaled
	scale     float64
	// Where groups is above 0, experts of the best groupsUsed groups alone are chosen from: by the sum of
	// each group's best.
	groups, groupsUsed, best int
}

// choice is an expert and the factor of its output.
type choice struct {
	expert int
	weight float64
}

// choose returns a token's choices; correction may be nil. Of equal experts the first is chosen.
func (r routing) choose(logits, correction []float32) []choice {
	scores := r.scores(logits)
	rank := slices.Clone(scores)
	for i, c := range correction {
		rank[i] += float64(c)
	}
	if r.groups > 0 {
		r.withinGroups(rank)
	}
	var choices []choice
	total := 0.0
	for _, e := range largest(rank, r.used) {
		choices = append(choices, choice{e, scores[e]})
		total += scores[e]
	}
	if !r.normalize {
		total = 1
	}
	for i := range choices {
		choices[i].weight = choices[i].weight / total * r.scale
	}
	return choices
}

func (r routing) scores(logits []float32) []float64 {
	scores := make([]float64, len(logits))
	if r.sigmoid {
		for i, v := range logits {
			scores[i] = 1 / (1 + exp(-float64(v)))
		}
		return scores
	}
	top, total := float64(slices.Max(logits)), 0.0
	for i, v := range logits {
		scores[i] = exp(float64(v) - top)
		total += scores[i]
	}
	for i := range scores {
		scores[i] /= total
	}
	return scores
}

// withinGroups ranks the experts of all but the best groups last.
func (r routing) withinGroups(rank []float64) {
	size := len(rank) / r.groups
	group := func(g int) []float64 { return rank[g*size : (g+1)*size] }
	of := make([]float64, r.groups)
	for g := range of {
		for _, e := range largest(group(g), r.best) {
			of[g] += group(g)[e]
		}
	}
	best := largest(of, r.groupsUsed)
	for g := range of {
		if !slices.Contains(best, g) {
			for i := range group(g) {
				group(g)[i] = math.Inf(-1)
			}
		}
	}
}

// largest returns the indices of the n largest values, from the largest down.
func largest(values []float64, n int) []int {
	var places []int
	for range n {
		at := -1
		for i, v := range values {
			if !slices.Contains(places, i) && (at < 0 || v > values[at]) {
				at = i
			}
		}
		places = append(places, at)
	}
	return places
}

func (b *builder) routing(data *expertsData) routing {
	c := b.config
	r := routing{used: c.count(data.used), sigmoid: data.sigmoid, normalize: c.is(data.normalize), scale: c.factor(data.scale), best: data.best}
	if data.groups.name == "" || data.grouped != "" && get(c, data.method.name, data.method.value.(string)) != data.grouped {
		return r
	}
	r.groups, r.groupsUsed = c.count(data.groups), c.count(data.groupsUsed)
	return r
}

// grouped holds a routing against the number of experts.
func (b *builder) grouped(e *experts) {
	n, r, from := e.router.outputs, e.routing, e.router.outputs
	if r.groups > 0 {
		if n%r.groups != 0 || r.groupsUsed < 1 || r.groupsUsed > r.groups || n/r.groups < r.best {
			b.config.failf("%s is %d and %s is %d: %d experts are not so divided",
				b.family.ffn.experts.groups.name, r.groups, b.family.ffn.experts.groupsUsed.name, r.groupsUsed, n)
			return
		}
		from = n / r.groups * r.groupsUsed
	}
	if r.used < 1 || r.used > from {
		b.config.failf("%s is %d, of %d experts", b.family.ffn.experts.used.name, r.used, from)
	}
}
