package forward

import (
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/gemm/forward/vector"
)

// choice is an expert and the factor of its output.
type choice struct {
	expert int
	weight float64
}

// choose returns a token's experts and their factors. correction may be nil. If experts have equal scores, the first
// one is chosen.
func choose(r decoder.Routing, logits, correction []float32) []choice {
	scores := routerScores(r, logits)
	rank := slices.Clone(scores)
	for i, c := range correction {
		rank[i] += float64(c)
	}
	if r.Groups > 0 {
		withinGroups(r, rank)
	}
	var choices []choice
	total := 0.0
	for _, e := range largest(rank, r.Used) {
		choices = append(choices, choice{e, scores[e]})
		total += scores[e]
	}
	if !r.Normalize {
		total = 1
	}
	for i := range choices {
		choices[i].weight = choices[i].weight / total * r.Scale
	}
	return choices
}

func routerScores(r decoder.Routing, logits []float32) []float64 {
	scores := make([]float64, len(logits))
	if r.Sigmoid {
		for i, v := range logits {
			scores[i] = 1 / (1 + vector.Exp(-float64(v)))
		}
		return scores
	}
	top, total := float64(slices.Max(logits)), 0.0
	for i, v := range logits {
		scores[i] = vector.Exp(float64(v) - top)
		total += scores[i]
	}
	for i := range scores {
		scores[i] /= total
	}
	return scores
}

// withinGroups gives the experts outside the best groups the lowest rank.
func withinGroups(r decoder.Routing, rank []float64) {
	size := len(rank) / r.Groups
	group := func(g int) []float64 { return rank[g*size : (g+1)*size] }
	of := make([]float64, r.Groups)
	for g := range of {
		for _, e := range largest(group(g), r.Best) {
			of[g] += group(g)[e]
		}
	}
	best := largest(of, r.GroupsUsed)
	for g := range of {
		if !slices.Contains(best, g) {
			for i := range group(g) {
				group(g)[i] = math.Inf(-1)
			}
		}
	}
}

// largest returns the indices of the n largest values, in descending order of value.
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
