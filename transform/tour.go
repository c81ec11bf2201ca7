package transform

import (
	"context"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"
)

// distance is what orders are made by: what toggles on all wires between two labels, with the better of
// both signs where joint. It is one goroutine's.
func (s *sketch) distance(joint bool) func(a, b int) float64 {
	mass, sums := s.mass(), make([]separation, len(s.groups))
	return func(a, b int) float64 {
		s.between(a, b, sums)
		return weigh(sums, mass, joint)
	}
}

func weigh(sums []separation, mass []float64, joint bool) float64 {
	var alike, opposed float64
	for g, d := range sums {
		alike += mass[g] * d.alike
		opposed += mass[g] * d.opposed
	}
	if joint {
		return math.Min(alike, opposed)
	}
	return alike
}

// mass of each group: the weight of all its wires.
func (s *sketch) mass() []float64 {
	mass := make([]float64, len(s.groups))
	for g, follow := range s.groups {
		mass[g] = pull(follow)
	}
	return mass
}

// tour is an order of some labels under way: a path closed by one node more, the last, that is no distance
// from any other.
type tour struct {
	nodes  int       // labels and the node that closes the tour
	far    []float32 // nodes × nodes
	groups [][]float32
	walk   []int // nodes in their order
	place  []int // of each node in walk
}

// newTour measures the distances between labels.
func (s *sketch) newTour(ctx context.Context, labels []int, joint bool, workers int) (*tour, error) {
	n := len(labels)
	t := &tour{nodes: n + 1}
	mass := s.mass()
	t.groups = make([][]float32, len(s.groups))
	for g := range t.groups {
		t.groups[g] = make([]float32, t.nodes*t.nodes)
	}
	t.far = t.groups[0]
	if len(t.groups) > 1 {
		t.far = make([]float32, t.nodes*t.nodes)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, workers))
	const tile = 16 // labels whose words stay near
	for i0 := 0; i0 < n; i0 += tile {
		g.Go(func() error {
			sums := make([]separation, len(s.groups))
			for j0 := 0; j0 < n; j0 += tile {
				if err := ctx.Err(); err != nil {
					return err
				}
				for i := i0; i < min(i0+tile, n); i++ {
					for j := j0; j < min(j0+tile, n); j++ {
						if i == j || j > i && s.symmetric() {
							continue
						}
						s.between(labels[i], labels[j], sums)
						t.set(i, j, sums, mass, joint)
						if s.symmetric() {
							t.set(j, i, sums, mass, joint)
						}
					}
				}
			}
			return nil
		})
	}
	return t, g.Wait()
}

// symmetric reports whether it makes no difference which of two labels follows the other.
func (s *sketch) symmetric() bool { return len(s.head) == 0 || &s.head[0] == &s.tail[0] }

func (t *tour) set(i, j int, sums []separation, mass []float64, joint bool) {
	var alike, opposed float64
	for g, d := range sums {
		alike += mass[g] * d.alike
		opposed += mass[g] * d.opposed
	}
	for g, d := range sums {
		v := d.alike
		if joint && opposed < alike {
			v = d.opposed
		}
		t.groups[g][i*t.nodes+j] = float32(v)
	}
	if len(t.groups) > 1 {
		t.far[i*t.nodes+j] = float32(weigh(sums, mass, joint))
	}
}

// dist is exact in sums and differences of a few, so that what seems shorter is.
func (t *tour) dist(a, b int) float64 { return float64(t.far[a*t.nodes+b]) }

// search finds a path, whose places are tied so. Labels that are not symmetric are heads, and few: the
// walk to the nearest is enough.
func (t *tour) search(ctx context.Context, ties [][]tie, symmetric bool) ([]int, error) {
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	if !symmetric {
		return t.path(), nil
	}
	if err := t.improve(ctx); err != nil {
		return nil, err
	}
	path := t.path()
	if along(ties) {
		return path, nil
	}
	return path, t.exchange(ctx, path, ties)
}

// along reports whether ties are a path's, all alike: then its length is all there is to lower.
func along(ties [][]tie) bool {
	weight := 0.0
	for i, list := range ties {
		for _, e := range list {
			if weight == 0 {
				weight = e.weight
			}
			if e.to-i > 1 || i-e.to > 1 || e.weight != weight || e.group > 0 {
				return false
			}
		}
	}
	return true
}

// path is the tour opened at its last node.
func (t *tour) path() []int {
	var path []int
	at := t.place[t.nodes-1]
	for i := 1; i < t.nodes; i++ {
		path = append(path, t.walk[(at+i)%t.nodes])
	}
	return path
}

// begin walks from the first label to the nearest that is left, and so on.
func (t *tour) begin(ctx context.Context) error {
	t.walk, t.place = []int{0}, make([]int, t.nodes)
	left := identity(t.nodes - 1)[1:]
	for last := 0; len(left) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		best := 0
		for i, c := range left {
			if t.dist(last, c) < t.dist(last, left[best]) {
				best = i
			}
		}
		last = left[best]
		left = slices.Delete(left, best, best+1)
		t.walk = append(t.walk, last)
	}
	t.walk = append(t.walk, t.nodes-1)
	t.number(0, t.nodes)
	return nil
}

func (t *tour) number(from, to int) {
	for i := from; i < to; i++ {
		t.place[t.walk[i]] = i
	}
}

// step is the node that many places on.
func (t *tour) step(node, by int) int { return t.walk[(t.place[node]+by+t.nodes)%t.nodes] }

// Improvements smaller than this share of a distance are rounding.
const tourNoise = 1e-5

// nearest lists the labels nearest to each.
func (t *tour) nearest(ctx context.Context) ([][]int, error) {
	const few = 12
	all := make([][]int, t.nodes)
	for a := range t.nodes - 1 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var list []int
		for b := range t.nodes - 1 {
			if b == a || len(list) == few && t.dist(a, b) >= t.dist(a, list[few-1]) {
				continue
			}
			i, _ := slices.BinarySearchFunc(list, t.dist(a, b), func(c int, d float64) int {
				if t.dist(a, c) <= d {
					return -1
				}
				return 1
			})
			list = slices.Insert(list, i, b)[:min(len(list)+1, few)]
		}
		all[a] = list
	}
	return all, nil
}

// improve reverses stretches of the tour (2-opt) and moves up to three neighbours elsewhere (Or-opt),
// until nothing of the kind makes it shorter. Distances are symmetric.
func (t *tour) improve(ctx context.Context) error {
	near, err := t.nearest(ctx)
	if err != nil {
		return err
	}
	for shorter := true; shorter; {
		shorter = false
		for a := range t.nodes - 1 {
			if err := ctx.Err(); err != nil {
				return err
			}
			for t.reverseAt(a, near[a]) || t.moveAt(a, near[a]) {
				shorter = true
			}
		}
	}
	return nil
}

// reverseAt brings a next to one of the nodes near it by reversing what lies between.
func (t *tour) reverseAt(a int, near []int) bool {
	for _, way := range []int{1, -1} {
		b := t.step(a, way)
		ab := t.dist(a, b)
		for _, c := range near {
			ac := t.dist(a, c)
			if ac >= ab {
				break
			}
			e := t.step(c, way)
			if gain := ab + t.dist(c, e) - ac - t.dist(b, e); gain <= tourNoise*ab {
				continue
			}
			i, j := t.place[a], t.place[c]
			if way < 0 {
				i, j = t.place[b], t.place[e]
			}
			i, j = min(i, j)+1, max(i, j)+1
			slices.Reverse(t.walk[i:j])
			t.number(i, j)
			return true
		}
	}
	return false
}

// moveAt takes a and up to two nodes behind or before it out of the tour, and puts them beside one of the
// nodes near a.
func (t *tour) moveAt(a int, near []int) bool {
	for length := 1; length <= 3 && length < t.nodes-3; length++ {
		for _, way := range []int{1, -1} { // the others lie that way from a
			end := t.step(a, way*(length-1))
			before, after := t.step(a, -way), t.step(end, way)
			taken := t.dist(before, a) + t.dist(end, after) - t.dist(before, after)
			for _, c := range near {
				ac := t.dist(a, c)
				if ac >= taken {
					break
				}
				if t.within(c, a, way, length) {
					continue
				}
				for _, side := range []int{1, -1} { // of c
					e := t.step(c, side)
					if t.within(e, a, way, length) {
						continue
					}
					if gain := taken + t.dist(c, e) - ac - t.dist(end, e); gain > tourNoise*taken {
						t.move(a, way, length, c, side)
						return true
					}
				}
			}
		}
	}
	return false
}

// within reports whether c is one of the nodes from a on.
func (t *tour) within(c, a, way, length int) bool {
	return (way*(t.place[c]-t.place[a])+t.nodes)%t.nodes < length
}

// move puts the nodes from a on beside c, a next to it.
func (t *tour) move(a, way, length, c, side int) {
	var taken []int
	for i := range length {
		taken = append(taken, t.step(a, way*i))
	}
	if side < 0 {
		slices.Reverse(taken)
	}
	rest := slices.DeleteFunc(t.walk, func(v int) bool { return slices.Contains(taken, v) })
	at := slices.Index(rest, c)
	if side > 0 {
		at++
	}
	t.walk = slices.Insert(rest, at, taken...)
	t.number(0, t.nodes)
}

// exchange swaps labels of a path for as long as that lowers what toggles on all wires between them, those
// included that no path can follow. ties are, of each place of the path, to others of it, both ways.
func (t *tour) exchange(ctx context.Context, path []int, ties [][]tie) error {
	cost := func(at, label, but int) (sum float64) {
		for _, e := range ties[at] {
			if e.to != but {
				sum += e.weight * float64(t.groups[e.group][label*t.nodes+path[e.to]])
			}
		}
		return sum
	}
	costs := make([]float64, len(path)) // of places with their labels
	for i := range path {
		costs[i] = cost(i, path[i], -1)
	}
	swap := func(i, j int) {
		path[i], path[j] = path[j], path[i]
		for _, at := range [2]int{i, j} {
			costs[at] = cost(at, path[at], -1)
			for _, e := range ties[at] {
				costs[e.to] = cost(e.to, path[e.to], -1)
			}
		}
	}
	const sweeps = 4
	for range sweeps {
		better := false
		for i := range path {
			if err := ctx.Err(); err != nil {
				return err
			}
			for j := range i {
				now, then := costs[i]+costs[j], cost(i, path[j], j)+cost(j, path[i], i)
				if then > now*(1-tourNoise) {
					continue // the tie between the two, if there is one, would only raise it
				}
				if now = cost(i, path[i], j) + cost(j, path[j], i); then < now*(1-tourNoise) {
					swap(i, j)
					better = true
				}
			}
		}
		if !better {
			break
		}
	}
	return nil
}
