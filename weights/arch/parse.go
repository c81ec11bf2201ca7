package arch

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Parse reads a family file. It returns the first error if the JSON is invalid, has an unknown field, or does not fit the
// family in "like". All other problems are listed at once, one line each.
func Parse(data []byte) (*Family, error) {
	f, err := parse(data, files)
	if err == nil {
		sum := sha256.Sum256(data)
		f.Digest = hex.EncodeToString(sum[:])
	}
	return f, err
}

// parse is Parse with bases as the catalogue.
func parse(data []byte, bases fs.FS) (*Family, error) {
	s, err := readSpec(data, bases)
	if err != nil {
		return nil, err
	}
	c := &compiler{
		spec:   s,
		family: &Family{Name: s.Family, Doc: s.Doc, ModelTypes: s.ModelTypes, Architectures: s.Architectures, Absent: s.Absent},
		flags:  map[string]bool{}, dims: map[string]bool{}, loops: map[string]int{}, indices: map[string]int{},
	}
	c.head()
	c.readFlags()
	c.readDims()
	c.readLoops()
	c.readIndices()
	c.readTensors()
	c.readNorms()
	c.checkReferences()
	if len(c.problems) == 0 { // these two checks need a complete family
		c.checkOverlaps()
		c.checkSymmetries()
	}
	if len(c.problems) > 0 {
		return nil, errors.Join(c.problems...)
	}
	return c.family, nil
}

// compiler turns a spec into a Family and collects the problems.
type compiler struct {
	spec     *spec
	family   *Family
	flags    map[string]bool
	dims     map[string]bool
	loops    map[string]int // slots
	indices  map[string]int // slots
	problems []error
}

// addf records a problem at a place, such as `dims[2] "heads"`.
func (c *compiler) addf(at, format string, args ...any) {
	c.problems = append(c.problems, fmt.Errorf("family %q: %s: %s", c.spec.Family, at, fmt.Sprintf(format, args...)))
}

func place(list string, i int, name string) string { return fmt.Sprintf("%s[%d] %q", list, i, name) }

func (c *compiler) head() {
	if c.spec.Family == "" {
		c.addf("family", "has no name")
	}
	if len(c.spec.ModelTypes)+len(c.spec.Architectures) == 0 {
		c.addf("model_types", "needs model_types or architectures")
	}
	c.family.prefixes = c.spec.Prefixes
	if len(c.spec.Prefixes) == 0 {
		c.family.prefixes = []prefix{{}}
	}
	for i, p := range c.family.prefixes {
		for word, says := range p {
			if p.own(word) && (says == "" || strings.ContainsAny(says, ".{}")) {
				c.addf(fmt.Sprintf("prefixes[%d]", i), "{%s} is %q, but must be one part of a name: not empty, and without dots and braces", word, says)
			}
			for j, other := range c.family.prefixes {
				if _, ok := other[word]; p.own(word) && !ok {
					c.addf(fmt.Sprintf("prefixes[%d]", j), "has no value for {%s}, but prefixes[%d] has one: give every entry the same variables", word, i)
				}
			}
		}
	}
	for i, a := range c.spec.Absent {
		if a.What == "" || a.Why == "" {
			c.addf(place("absent", i, a.What), "give both \"what\" and \"why\"")
		}
	}
	if len(c.spec.Tensors) == 0 {
		c.addf("tensors", "the list is empty: describe the model's tensors")
	}
}

// named checks a name that expressions can use. Dims, loops and indices must have different names.
func (c *compiler) named(at, name string) bool {
	_, loop := c.loops[name]
	_, index := c.indices[name]
	switch toks, err := lex(name, ""); {
	case err != nil || len(toks) != 2 || toks[0].text != name || toks[0].kind != 'a':
		c.addf(at, "a name must consist of ASCII letters, digits and _, and must not start with a digit")
	case c.dims[name] || loop || index:
		c.addf(at, "the name is used already: choose another")
	default:
		return true
	}
	return false
}

func (c *compiler) condition(at, s string) condition {
	cond, unknown := parseCondition(s, c.flags)
	for _, flag := range unknown {
		c.addf(at, "the condition names the flag %q, which is not in flags", flag)
	}
	return cond
}

// arith parses an expression over dims. It returns nil if s is empty or invalid.
func (c *compiler) arith(at, what, s string) *arith {
	if s == "" {
		return nil
	}
	a, err := parseArith(s)
	if err != nil {
		c.addf(at, "%s %q: %v", what, s, err)
		return nil
	}
	for _, name := range a.names() {
		if !c.dims[name] {
			c.addf(at, "%s %q: names the dim %q, which is not defined before this entry", what, s, name)
		}
	}
	return a
}

// required is arith for an expression that must not be empty.
func (c *compiler) required(at, what, s string) *arith {
	if s == "" {
		c.addf(at, "has no %s", what)
	}
	return c.arith(at, what, s)
}

func (c *compiler) readFlags() {
	for i, f := range c.spec.Flags {
		at := place("flags", i, f.Name)
		switch {
		case f.Name == "" || strings.ContainsAny(f.Name, "! ") || f.Name == always:
			c.addf(at, "a flag's name must be a word other than %q, without \"!\"", always)
		case c.flags[f.Name]:
			c.addf(at, "the name is used already: choose another")
		}
		if len(f.Fields) == 0 {
			c.addf(at, "has no fields")
		}
		if n := len(f.Is); (n > 0 || f.Present) && len(f.Unlike) > 0 || n > 0 && f.Present {
			c.addf(at, "give only one of \"is\", \"present\" and \"unlike\"")
		}
		if f.Present && f.Default {
			c.addf(at, "with \"present\" and \"default\": true the flag is always set: leave one of them out")
		}
		c.flags[f.Name] = true
	}
	c.family.flags = c.spec.Flags
}

func (c *compiler) readDims() {
	unconditional := map[string]bool{}
	for i, d := range c.spec.Dims {
		at := place("dims", i, d.Name)
		if unconditional[d.Name] {
			c.addf(at, "is never used, because an earlier entry of this name has no \"when\"")
		} else if !c.dims[d.Name] {
			c.named(at, d.Name)
		}
		if d.Of != "" && len(d.Fields) == 0 {
			c.addf(at, "\"of\" needs \"fields\"")
		}
		if len(d.Fields) == 0 && d.Value == "" {
			c.addf(at, "give \"fields\" or \"value\"")
		}
		if d.Min != nil && (*d.Min < 0 || *d.Min > maxDim) {
			c.addf(at, "min is %d, outside 0 to %d", *d.Min, maxDim)
		}
		c.family.dims = append(c.family.dims, dimDef{d, c.condition(at, d.When), c.arith(at, "of", d.Of), c.arith(at, "value", d.Value)})
		c.dims[d.Name] = true
		unconditional[d.Name] = d.When == ""
	}
}

func (c *compiler) readLoops() {
	for i, l := range c.spec.Loops {
		at := place("loops", i, l.Name)
		c.named(at, l.Name)
		if c.family.prefixes[0].own(l.Name) {
			c.addf(at, "the name is already used in prefixes")
		}
		c.loops[l.Name] = i
		c.family.loops = append(c.family.loops, loopDef{l.Name, c.required(at, "count", l.Count), l.Beyond})
	}
}

func (c *compiler) readIndices() {
	for i, x := range c.spec.Indices {
		at := place("indices", i, x.Name)
		c.named(at, x.Name)
		def := indexDef{indexSpec: x, length: c.required(at, "length", x.Length), uses: c.arith(at, "uses", x.Uses)}
		for _, p := range x.Per {
			slot, ok := c.slot(p)
			if !ok {
				c.addf(at, "per: names %q, which is neither a loop nor an index before this entry", p)
				continue
			}
			for _, outer := range c.per(slot) {
				if !slices.Contains(def.per, outer) {
					c.addf(at, "per: %q must come before %q, because index %[2]q is per %[1]q", c.slotName(outer), p)
				}
			}
			if slices.Contains(def.per, slot) {
				c.addf(at, "per: names %q twice", p)
			}
			def.per = append(def.per, slot)
		}
		def.permute = c.symmetry(at, x.Permute)
		def.sign = c.symmetry(at, x.Sign)
		def.scale = c.symmetry(at, x.Scale)
		c.indices[x.Name] = len(c.spec.Loops) + i
		c.family.indices = append(c.family.indices, def)
	}
}

// always is the condition that is true for every model.
const always = "always"

func (c *compiler) symmetry(at, s string) symmetry {
	if s == "" {
		return nil
	}
	var cond condition
	if s != always {
		cond = c.condition(at, s)
	}
	return &cond
}

func (c *compiler) slot(name string) (int, bool) {
	if slot, ok := c.loops[name]; ok {
		return slot, true
	}
	slot, ok := c.indices[name]
	return slot, ok
}

// per returns the slots in "per" of the index at slot.
func (c *compiler) per(slot int) []int {
	if slot < len(c.family.loops) {
		return nil
	}
	return c.family.indices[slot-len(c.family.loops)].per
}

func (c *compiler) slotName(slot int) string { return c.family.slotName(slot) }

func (f *Family) slotName(slot int) string {
	if slot < len(f.loops) {
		return f.loops[slot].name
	}
	return f.indices[slot-len(f.loops)].Name
}
