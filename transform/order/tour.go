package order

import (
	"context"
	"math"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// Largest numbers of labels that are ordered together. Time and memory grow with the square of the number.
const (
	blockLabels = 1024
	wholeLabels = 2048 // up to this number, labels are not cut into blocks
)

// Order returns the labels in an order that toggles fewer bits: a nearest-neighbour path, improved by 2-opt (Croes
// 1958). More than 2048 labels are ordered in blocks of 1024 neighbours. If signs are chosen afterwards, Order also
// tries an order for the better signs. Order returns nil if no order toggles fewer bits than the source's.
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
		tried = append(tried, true) // an order for the better signs is not always better
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

// path orders the labels block by block. With signs, a distance is the smaller of the distances for equal and for
// opposite signs.
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

// sum returns the toggles along a path. With signs, the labels get their chosen signs.
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

// symmetric reports whether distances are symmetric.
func (s *Sketch) symmetric() bool { return len(s.head) == 0 || &s.head[0] == &s.tail[0] }

// matrix holds distances. Row i has the distances from label i to the labels that may follow it.
type matrix struct {
	n   int
	far []float32
}

func (m *matrix) at(a, b int) float64 { return float64(m.far[a*m.n+b]) }

// distances returns the distances between labels: the bits that toggle where one label follows another, at all lags.
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
		if symmetric { // earlier rows have the other distances
			first = i
		}
		for j := first; j < n; j++ {
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

// nearestNeighbour starts at the first label and repeatedly goes to the nearest remaining label. Ties go to the
// earlier label.
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

// twoOpt reverses stretches of a path until no reversal shortens it.
func (m *matrix) twoOpt(ctx context.Context, path []int) error {
	const noise = 1e-5 // share of a distance; smaller improvements are rounding errors
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

// Identity returns the unchanged order of n labels.
func Identity(n int) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	return p
}
