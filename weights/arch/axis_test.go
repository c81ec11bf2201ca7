package arch

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// change is a change of a layout's indices, by index name.
type change struct {
	perms map[string][]int
	flips map[string][]bool
	exps  map[string][]int
}

func (c change) perm(index string) []int  { return c.perms[index] }
func (c change) flip(index string) []bool { return c.flips[index] }
func (c change) exp(index string) []int   { return c.exps[index] }

// drawChange draws a change that each index allows, and leaves some indices unchanged.
func drawChange(t *rapid.T, l *Layout) change {
	c := change{map[string][]int{}, map[string][]bool{}, map[string][]int{}}
	for _, x := range l.Indices {
		labels := make([]int, x.Len)
		for i := range labels {
			labels[i] = i
		}
		touch := rapid.IntRange(0, 15).Draw(t, x.Name)
		if x.Permute && touch&3 != 0 {
			c.perms[x.Name] = rapid.Permutation(labels).Draw(t, x.Name)
		}
		if x.Sign && touch&4 != 0 {
			c.flips[x.Name] = rapid.SliceOfN(rapid.Bool(), x.Len, x.Len).Draw(t, x.Name)
		}
		if x.Scale && touch&8 != 0 {
			c.exps[x.Name] = rapid.SliceOfN(rapid.IntRange(-3, 3), x.Len, x.Len).Draw(t, x.Name)
		}
	}
	return c
}

// forAxes runs a property over all axes of all cases.
func forAxes(t *testing.T, property func(t *rapid.T, l *Layout, a *Axis)) {
	for name, l := range cases(t) {
		t.Run(name, func(t *testing.T) {
			names := slices.Sorted(maps.Keys(l.Claims))
			rapid.Check(t, func(t *rapid.T) {
				c := l.Claims[rapid.SampledFrom(names).Draw(t, "tensor")]
				property(t, l, rapid.SampledFrom(c.Axes).Draw(t, "axis"))
			})
		})
	}
}

func TestGatherPermutes(t *testing.T) {
	forAxes(t, func(t *rapid.T, l *Layout, a *Axis) {
		g := a.Gather(drawChange(t, l).perm)
		if g == nil {
			return
		}
		for i, source := range slices.Sorted(slices.Values(g)) {
			if i != source {
				t.Fatalf("%v: %v is not a permutation", a, g)
			}
		}
		if len(g) != a.Len() {
			t.Fatalf("%v: %d positions of %d", a, len(g), a.Len())
		}
	})
}

func TestNothingDone(t *testing.T) {
	for _, l := range cases(t) {
		for _, c := range l.Claims {
			for _, a := range c.Axes {
				none := change{}
				if a.Gather(none.perm) != nil || a.Signs(none.flip) != nil || a.Exps(none.exp) != nil || a.Positions("nobody") != nil {
					t.Errorf("%s: %v", c.Name, a)
				}
			}
		}
	}
}

// The labels of an index have equally many positions. The labels of a product's outermost index together cover all positions.
func TestPositionsPartition(t *testing.T) {
	for _, l := range cases(t) {
		for _, c := range l.Claims {
			for _, a := range c.Axes {
				for _, index := range a.Indices() {
					at := a.Positions(index)
					all := slices.Sorted(slices.Values(slices.Concat(at...)))
					if len(at) != l.Index(index).Len || len(all) == 0 || len(slices.Compact(slices.Clone(all))) != len(all) {
						t.Errorf("%v: %s: %v", a, index, at)
					}
					for _, positions := range at {
						if len(positions) != len(at[0]) || !slices.IsSorted(positions) {
							t.Errorf("%v: %s: %v", a, index, at)
						}
					}
				}
				if names := a.Indices(); len(names) > 0 && !strings.Contains(a.String(), "|") {
					if n := len(slices.Concat(a.Positions(names[0])...)); n != a.Len() {
						t.Errorf("%v: %s covers %d of %d", a, names[0], n, a.Len())
					}
				}
			}
		}
	}
}

// Gather and Positions agree on a permutation of one index.
func TestGatherMovesPositions(t *testing.T) {
	forAxes(t, func(t *rapid.T, l *Layout, a *Axis) {
		c := drawChange(t, l)
		for _, index := range a.Indices() {
			perm := c.perms[index]
			if perm == nil {
				continue
			}
			g := a.Gather(func(x string) []int {
				if x == index {
					return perm
				}
				return nil
			})
			at := a.Positions(index)
			for place, label := range perm {
				for k, p := range at[place] {
					if g[p] != at[label][k] {
						t.Fatalf("%v: %s: place %d has %d, not %d", a, index, p, g[p], at[label][k])
					}
				}
			}
		}
	})
}

// Exponents stay on the positions of their index.
func TestExpsStay(t *testing.T) {
	forAxes(t, func(t *rapid.T, l *Layout, a *Axis) {
		c := drawChange(t, l)
		for _, index := range a.Indices() {
			exp := c.exps[index]
			if exp == nil {
				continue
			}
			got := a.Exps(func(x string) []int {
				if x == index {
					return exp
				}
				return nil
			})
			belongs := map[int]int{}
			for label, positions := range a.Positions(index) {
				for _, p := range positions {
					belongs[p] = exp[label]
				}
			}
			for p, e := range got {
				if e != 0 && e != belongs[p] && e != -belongs[p] {
					t.Fatalf("%v: %s: position %d has 2^%d", a, index, p, e)
				}
			}
		}
	})
}

func TestInverse(t *testing.T) {
	forAxes(t, func(t *rapid.T, l *Layout, a *Axis) {
		c := drawChange(t, l)
		there := a.Gather(c.perm)
		back := a.Gather(func(index string) []int { return inversePerm(c, index) })
		if there == nil {
			return
		}
		for i := range there {
			if there[back[i]] != i {
				t.Fatalf("%v: position %d comes back as %d", a, i, there[back[i]])
			}
		}
	})
}

// inversePerm returns the inverse of a change. If an index is counted per another, the instance at a place belongs to the label
// that was moved to the place.
func inversePerm(c change, index string) []int {
	if outer, rest, nested := strings.Cut(index, ".kv."); nested {
		index = outer + ".kv." + moved(c, outer+".kv", rest)
	} else if outer, rest, nested := strings.Cut(index, ".head."); nested {
		index = outer + ".head." + moved(c, outer+".head", rest)
	}
	perm := c.perms[index]
	if perm == nil {
		return nil
	}
	inverse := make([]int, len(perm))
	for place, label := range perm {
		inverse[label] = place
	}
	return inverse
}

// moved replaces the place in "1.v" by the label that was moved to the place.
func moved(c change, outer, rest string) string {
	place, name, _ := strings.Cut(rest, ".")
	if perm := c.perms[outer]; perm != nil {
		i, _ := strconv.Atoi(place)
		place = strconv.Itoa(perm[i])
	}
	return place + "." + name
}

func TestAxisExamples(t *testing.T) {
	_, l := synthetic(t, mustParse(t, unusual), unusualConfig)
	qkv := l.Claims["m.b.0.qkv.weight"].Axes[0]
	if got := qkv.String(); got != "kv (group (2 +pair | +rest) | 2 -pair | -rest | +v)" {
		t.Errorf("written back as %q", got)
	}
	// A KV head is 3 query heads of 2·2+3 rows, then a key and a value of 7 rows each.
	if got := fmt.Sprint(qkv.Positions("layers.0.kv.1.pair")[1]); got != "[36 38 43 45 50 52 57 59]" {
		t.Errorf("pair 1 of head 1 at %s", got)
	}
	exps := qkv.Exps(func(index string) []int {
		return map[string][]int{"layers.0.kv.1.pair": {0, 5}}[index]
	})
	if exps[36] != 5 || exps[57] != -5 || exps[35] != 0 {
		t.Errorf("exponents %v", exps)
	}
	down := l.Claims["m.b.0.gate_up.weight"].Axes[0]
	signs := down.Signs(func(index string) []bool {
		return map[string][]bool{"layers.0.ffn": {true, 10: false}}[index]
	})
	if signs[0] || !signs[11] {
		t.Errorf("signs %v", signs)
	}
}

func TestWrongLength(t *testing.T) {
	_, l := synthetic(t, find(t, Families(), "gpt2"), gpt2Config)
	defer func() {
		if got := recover(); got != "arch: 2 entries for index residual, which has 6 labels" {
			t.Errorf("recovered %v", got)
		}
	}()
	l.Claims["transformer.wte.weight"].Axes[1].Gather(func(string) []int { return []int{1, 0} })
}
