package arch

import (
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/weights"
)

func (c *compiler) readTensors() {
	unconditional := map[string]bool{}
	for i, t := range c.spec.Tensors {
		at := place("tensors", i, t.Name)
		if unconditional[t.Name] {
			c.addf(at, "is never used, because an earlier entry of this name has no \"when\"")
		}
		unconditional[t.Name] = unconditional[t.Name] || t.When == "" && t.From == "" && t.To == ""
		def := &tensorDef{tensorSpec: t, when: c.condition(at, t.When)}
		def.pattern = c.pattern(at, t.Name)
		def.bias = c.pattern(at, t.Bias)
		def.from = c.arith(at, "from", t.From)
		def.to = c.arith(at, "to", t.To)
		if (t.From != "" || t.To != "") && len(def.pattern.vars) == 0 {
			c.addf(at, "\"from\" and \"to\" need a variable in the tensor's name")
		}
		if err := def.role.UnmarshalText([]byte(t.Role)); err != nil {
			c.addf(at, "%v", err)
		}
		c.readAxes(at, def)
		c.family.tensors = append(c.family.tensors, def)
	}
}

// pattern parses a name with variables. It returns the empty pattern for an empty name.
func (c *compiler) pattern(at, s string) pattern {
	if s == "" {
		return pattern{}
	}
	p, err := parsePattern(s, c.loops, c.family.prefixes[0])
	if err != nil {
		c.addf(at, "%v", err)
	}
	return p
}

// readAxes parses a tensor's axes and checks what its role allows.
func (c *compiler) readAxes(at string, t *tensorDef) {
	if (t.role == Buffer) != (len(t.Axes) == 0) {
		c.addf(at, "a buffer must have no axes, and every other tensor needs an axis per dimension")
	}
	if t.role != Linear && (t.Out != 0 || t.Softmax || t.Norm != "" || t.Bias != "") {
		c.addf(at, "only a linear tensor may have \"out\", \"softmax\", \"norm\" or \"bias\"")
	}
	if t.role == Linear && (t.Out < 0 || t.Out >= len(t.Axes)) {
		c.addf(at, "\"out\" is %d: give an axis from 0 to %d", t.Out, max(0, len(t.Axes)-1))
	}
	for i, s := range t.Axes {
		riders, err := parseAxis(s)
		if err != nil {
			c.addf(at, "axis %d %q: %v", i, s, err)
			continue
		}
		if err := c.resolve(t.pattern, riders); err != nil {
			c.addf(at, "axis %d %q: %v", i, s, err)
		}
		t.axes = append(t.axes, riders)
	}
}

// resolve finds the slots of the names in an axis expression. It checks that every index is within the loops and indices in
// its "per".
func (c *compiler) resolve(name pattern, riders []*node) (err error) {
	moved := map[int]bool{} // indices of the first rider, which decides the order
	for i, r := range riders {
		r.leaves(func(n *node) {
			if e := c.resolveLeaf(n); err == nil {
				err = e
			}
			switch {
			case n.slot < 0:
			case i == 0:
				moved[n.slot] = true
			case c.family.index(n.slot).permute != nil && !moved[n.slot] && err == nil:
				err = fmt.Errorf("column %d: %q can be permuted, so it must also stand before the \"&\"", n.column, n.text)
			}
		})
		if err == nil {
			_, err = c.scope(name, r, nil)
		}
	}
	return err
}

func (f *Family) index(slot int) *indexDef { return &f.indices[slot-len(f.loops)] }

func (c *compiler) resolveLeaf(n *node) error {
	slot, index := c.indices[n.text]
	switch {
	case index:
		n.slot = slot
	case n.length > 0: // a number
	case !c.dims[n.text]:
		return fmt.Errorf("column %d: no index or dim is called %q", n.column, n.text)
	case n.sense != 0:
		return fmt.Errorf("column %d: %q is a dim or a number, not an index: remove its + or -", n.column, n.text)
	}
	return nil
}

// scope walks an expression from outer to inner. bound are the indices whose coordinates are known before n; scope returns the
// indices that are known after n.
func (c *compiler) scope(name pattern, n *node, bound []int) ([]int, error) {
	switch n.op {
	case '*':
		for _, p := range n.parts {
			var err error
			if bound, err = c.scope(name, p, bound); err != nil {
				return nil, err
			}
		}
		return bound, nil
	case '|':
		var common []int
		for i, p := range n.parts {
			b, err := c.scope(name, p, slices.Clone(bound))
			if err != nil {
				return nil, err
			}
			if i == 0 {
				common = b
			}
			common = slices.DeleteFunc(common, func(slot int) bool { return !slices.Contains(b, slot) })
		}
		return common, nil
	}
	if n.slot < 0 {
		return bound, nil
	}
	if slices.Contains(bound, n.slot) {
		return nil, fmt.Errorf("column %d: the index %q occurs twice in one product", n.column, n.text)
	}
	for _, p := range c.per(n.slot) {
		if p < len(c.family.loops) && !name.has(p) {
			return nil, fmt.Errorf("column %d: the index %q is per %s, but the tensor's name has no {%[3]s}", n.column, n.text, c.slotName(p))
		}
		if p >= len(c.family.loops) && !slices.Contains(bound, p) {
			return nil, fmt.Errorf("column %d: the index %q is per %s, but %[3]s does not come before it in a product", n.column, n.text, c.slotName(p))
		}
	}
	return append(slices.Clone(bound), n.slot), nil
}

// normKinds are the kinds of norm that a family can name.
var normKinds = []NormKind{LayerNorm, RMSNorm, RMSNorm1p}

func (c *compiler) readNorms() {
	c.family.norms = map[string]normDef{}
	for i, n := range c.spec.Norms {
		at := place("norms", i, n.Name)
		def := normDef{NormKind(n.Kind), c.pattern(at, n.Weight), c.pattern(at, n.Bias)}
		if _, taken := c.family.norms[n.Name]; taken || n.Name == "" {
			c.addf(at, "the name is empty or used already: choose another")
		}
		if !slices.Contains(normKinds, def.kind) {
			c.addf(at, "kind is %q, not one of %q", n.Kind, normKinds)
		}
		if !c.listed(n.Weight, Norm) {
			c.addf(at, "weight: tensors has no norm named %q", n.Weight)
		}
		if n.Bias != "" && !c.listed(n.Bias, Norm) {
			c.addf(at, "bias: tensors has no norm named %q", n.Bias)
		}
		for _, t := range c.family.tensors {
			if t.Name != n.Weight {
				continue
			}
			if t.normKind != "" && t.normKind != def.kind {
				c.addf(at, "kind is %q, but an earlier norm of the same weight is %q", def.kind, t.normKind)
			}
			t.normKind = def.kind
		}
		c.family.norms[n.Name] = def
	}
}

// listed reports whether some tensor has that name and role.
func (c *compiler) listed(name string, role Role) bool {
	return slices.ContainsFunc(c.family.tensors, func(t *tensorDef) bool { return t.Name == name && t.role == role })
}

// checkReferences checks that the tensors and norms that tensors refer to exist.
func (c *compiler) checkReferences() {
	for i, t := range c.family.tensors {
		at := place("tensors", i, t.Name)
		if t.Bias != "" && !c.listed(t.Bias, Bias) {
			c.addf(at, "bias: tensors has no bias named %q", t.Bias)
		}
		norm, known := c.family.norms[t.Norm]
		if t.Norm != "" && !known {
			c.addf(at, "norm: norms has no entry named %q", t.Norm)
		}
		for _, p := range []pattern{t.bias, norm.weight, norm.bias} {
			if !t.pattern.covers(p) {
				c.addf(at, "the bias or norm %q has a variable that the tensor's name lacks", p.text)
			}
		}
	}
}

// checkOverlaps reports tensors that could have the same name.
func (c *compiler) checkOverlaps() {
	for _, prefix := range c.family.prefixes {
		seen := map[string][]int{}
		for i, t := range c.family.tensors {
			o := weights.Outline(t.pattern.name(prefix, make([]int, len(c.loops))))
			for _, j := range seen[o] {
				other := c.family.tensors[j]
				if other.Name != t.Name && overlap(t.pattern.words(prefix), other.pattern.words(prefix)) {
					c.addf(place("tensors", i, t.Name), "a tensor's name can match both this entry and %s", place("tensors", j, other.Name))
				}
			}
			seen[o] = append(seen[o], i)
		}
	}
}

// checkSymmetries reports unused indices, and indices whose signs or scales could not cancel.
func (c *compiler) checkSymmetries() {
	plus, minus, used := map[int]int{}, map[int]int{}, map[int]bool{}
	for _, t := range c.family.tensors {
		for _, riders := range t.axes {
			for _, r := range riders {
				r.leaves(func(n *node) {
					used[n.slot] = true
					switch n.sense {
					case 1:
						plus[n.slot]++
					case -1:
						minus[n.slot]++
					}
				})
			}
		}
	}
	for i, x := range c.family.indices {
		at, slot := place("indices", i, x.Name), len(c.family.loops)+i
		switch {
		case !used[slot]:
			c.addf(at, "no axis uses this index: remove it")
		case x.scale != nil && (plus[slot] == 0 || minus[slot] == 0):
			c.addf(at, "\"scale\" needs an axis with +%s and one with -%[1]s, so that the two factors cancel", x.Name)
		case x.sign != nil && plus[slot]+minus[slot] < 2:
			c.addf(at, "\"sign\" needs two axes with +%s or -%[1]s, so that the two signs cancel", x.Name)
		}
	}
}
