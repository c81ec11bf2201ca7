package order

import (
	"context"
	"math"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// Labels that are ordered together. Time and memory grow as the square of their number.
const (
	blockLabels = 1024
	wholeLabels = 2048 // that are not worth cutting into blocks
)

// Order returns the labels in an order that toggles fewer bits: a nearest-neighbour path, improved by 2-opt (Croes 1958). More
// than 2048 labels are ordered in blocks of 1024 neighbours. If signs are chosen afterwards, an order for the better signs is
// tried too. Order returns nil if the source's order toggles no more bits.
func (s *Sketch) Order(ctx context.Context, signs bool, workers int) ([]int, error) {
	place := s.Placement()
	if !place.linked() {
		return nil, nil
	}
	least, err := s.sum(ctx, place, place.Pick(Identity(s.labels)), signs, workers)
	if err != nil {
		return nil, err
	}
	tried := []bool{false}
	if signs {
		tried = append(tried, true) // an order that counts on signs is not always better
	}
	var best []int
	for _, count := range tried {
		path, err := s.path(ctx, count, workers)
		if err != nil {
			return nil, err
		}
		sum, err := s.sum(ctx, place, path, signs, workers)
		if err != nil {
			return nil, err
		}
		if sum < least {
			least, best = sum, place.Lay(path)
		}
	}
	return best, nil
}

// path orders the labels block by block; where signs is true labels are as near as with the better of both signs.
func (s *Sketch) path(ctx context.Context, signs bool, workers int) ([]int, error) {
	size := blockLabels
	if s.labels <= wholeLabels {
		size = s.labels
	}
	path := Identity(s.labels)
	for first := 0; first < s.labels; first += size {
		if err := s.orderBlock(ctx, path[first:min(first+size, s.labels)], signs, workers); err != nil {
			return nil, err
		}
	}
	return path, nil
}

// sum is what toggles along a path, with the signs that its labels get where signs is true.
func (s *Sketch) sum(ctx context.Context, p *Placement, path []int, signs bool, workers int) (float64, error) {
	t, err := s.Toggles(ctx, p, path, workers)
	flipped := make([]bool, len(path))
	if signs && err == nil {
		flipped = t.Signs(make([]bool, len(path)))
	}
	return t.Sum(flipped), err
}

// orderBlock orders labels in place.
func (s *Sketch) orderBlock(ctx context.Context, labels []int, signs bool, workers int) error {
	d, err := s.distances(ctx, labels, signs, workers)
	if err != nil {
		return err
	}
	path, err := d.nearestNeighbour(ctx)
	if err != nil {
		return err
	}
	if s.symmetric() {
		if err := d.twoOpt(ctx, path); err != nil {
			return err
		}
	}
	ordered := make([]int, len(path))
	for i, k := range path {
		ordered[i] = labels[k]
	}
	copy(labels, ordered)
	return nil
}

// symmetric reports whether it makes no difference which of two labels follows the other.
func (s *Sketch) symmetric() bool { return len(s.head) == 0 || &s.head[0] == &s.tail[0] }

// matrix of distances: row i has those from label i to labels that may follow it.
type matrix struct {
	n   int
	far []float32
}

func (m *matrix) at(a, b int) float64 { return float64(m.far[a*m.n+b]) }

// distances between labels: the bits that toggle where one follows another, at all lags.
func (s *Sketch) distances(ctx context.Context, labels []int, signs bool, workers int) (*matrix, error) {
	n := len(labels)
	m := &matrix{n, make([]float32, n*n)}
	weight := make([]float64, len(s.groups))
	for g, lags := range s.groups {
		weight[g] = totalWeight(lags)
	}
	symmetric := s.symmetric()
	return m, parallel.Run(ctx, n, workers, func(ctx context.Context, i int) error {
		sums := make([]separation, len(s.groups))
		first := 0
		if symmetric { // the rows of earlier labels have the others
			first = i
		}
		for j := first; j < n; j++ {
			if j%64 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			s.between(labels[i], labels[j], sums)
			var alike, opposed float64
			for g, d := range sums {
				alike += float64(weight[g] * d.alike)
				opposed += float64(weight[g] * d.opposed)
			}
			if signs {
				alike = math.Min(alike, opposed)
			}
			m.far[i*n+j] = float32(alike)
			if symmetric {
				m.far[j*n+i] = float32(alike)
			}
		}
		return nil
	})
}

// nearestNeighbour walks from the first label to the nearest that is left, and so on. Ties go to the earlier one.
func (m *matrix) nearestNeighbour(ctx context.Context) ([]int, error) {
	path := make([]int, 1, m.n)
	visited := make([]bool, m.n)
	visited[0] = true
	for last := 0; len(path) < m.n; path = append(path, last) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		best := -1
		for c := range m.n {
			if !visited[c] && (best < 0 || m.at(last, c) < m.at(last, best)) {
				best = c
			}
		}
		last = best
		visited[last] = true
	}
	return path, nil
}

// twoOpt reverses stretches of a path for as long as that makes it shorter.
func (m *matrix) twoOpt(ctx context.Context, path []int) error {
	const noise = 1e-5 // smaller improvements, as a share of a distance, are rounding
	for shorter := true; shorter; {
		shorter = false
		for i := range path {
			if err := ctx.Err(); err != nil {
				return err
			}
			for j := i + 1; j < len(path); j++ {
				var before, after float64
				if i > 0 {
					before, after = m.at(path[i-1], path[i]), m.at(path[i-1], path[j])
				}
				if j+1 < len(path) {
					before += m.at(path[j], path[j+1])
					after += m.at(path[i], path[j+1])
				}
				if after < before*(1-noise) {
					for a, b := i, j; a < b; a, b = a+1, b-1 {
						path[a], path[b] = path[b], path[a]
					}
					shorter = true
				}
			}
		}
	}
	return nil
}

// Identity is the order of n labels as they are.
func Identity(n int) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	return p
}
