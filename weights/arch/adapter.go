package arch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Adapter says how a LoRA adapter fits the base model in the same folder: y = w·x + s·B·(A·x). The columns of A are the
// layer's inputs, and the rows of B its outputs. Each symmetry of the base is also applied to the adapter's axes, so base and
// adapter still fit each other.
type Adapter struct {
	// Changes maps each tensor of the base that the adapter changes to the adapter's first tensor that changes it.
	Changes map[string]string
	// Problem says which part of the adapter is not supported; empty if lowtoggle supports all of it. With a Problem, all
	// indices of the base are blocked.
	Problem string
}

// Adapt returns a copy of the layout with claims for an adapter's tensors, whose Role is zero, and with their axes among the
// uses of its indices. configJSON is adapter_config.json, or nil if the file is missing. tensors are the adapter's. A tensor
// of the adapter that changes an unclaimed tensor gets no claim, and no transform changes the two. If the adapter does not
// fit or is not supported, Adapter.Problem says why.
func (l *Layout) Adapt(configJSON []byte, tensors []weights.Info) *Layout {
	adapted := l.clone()
	a := &Adapter{Changes: map[string]string{}}
	err := adapted.adapt(a, tensors)
	if err == nil {
		err = checkAdapterConfig(configJSON)
	}
	if err != nil {
		adapted = l.clone()
		a = &Adapter{Problem: err.Error()}
		for _, x := range adapted.Indices {
			x.block("the LoRA adapter in the model's folder cannot be changed with the model: %v", err)
		}
	}
	adapted.Adapter = a
	return adapted
}

// clone returns a copy of the layout in which Adapt may change claims and indices.
func (l *Layout) clone() *Layout {
	c := *l
	c.Claims, c.byName = maps.Clone(l.Claims), map[string]*Index{}
	c.Indices = slices.Clone(l.Indices)
	for i, x := range l.Indices {
		y := *x
		y.Uses = slices.Clone(x.Uses)
		c.Indices[i], c.byName[x.Name] = &y, &y
	}
	return &c
}

func (l *Layout) adapt(a *Adapter, tensors []weights.Info) error {
	names := l.paths()
	changed := map[string]string{} // the base's tensor: the adapter's tensor that changes it
	ranks := map[string]int{}      // the base's tensor: rank of the matrices that are added to it
	for _, t := range tensors {
		if names.exact[t.Name] {
			return fmt.Errorf("tensor %q: the base model has a tensor of the same name", t.Name)
		}
		base, part := baseOf(names, t.Name)
		if base == "" {
			return fmt.Errorf("tensor %q: is neither lora_A nor lora_B of a layer of the base model, nor a replacement for one of its tensors", t.Name)
		}
		if first, twice := changed[base+part.suffix]; twice {
			return fmt.Errorf("tensor %q: changes the base model's %q, and so does tensor %q: only one tensor may change %[2]q", t.Name, base, first)
		}
		changed[base+part.suffix] = t.Name
		if a.Changes[base] == "" {
			a.Changes[base] = t.Name
		}
		c := l.Claims[base]
		if c == nil {
			continue
		}
		axes := part.axes(c, t.Shape)
		if !fits(axes, t.Shape) {
			return fmt.Errorf("tensor %q: has shape %v, which does not fit %s", t.Name, t.Shape, describeBase(c))
		}
		if part.rank >= 0 {
			if r, ok := ranks[base]; ok && r != t.Shape[part.rank] {
				return fmt.Errorf("tensor %q: has rank %d, but the other matrix for %q has rank %d", t.Name, t.Shape[part.rank], base, r)
			}
			ranks[base] = t.Shape[part.rank]
		}
		l.claim(&Claim{Name: t.Name, Kind: c.Kind + part.kind(), Layer: c.Layer, Axes: axes})
	}
	return checkPairs(tensors)
}

// checkPairs returns an error for a matrix without its partner, lora_A or lora_B. Runtimes would initialise the missing
// matrix, so they would not run the trained adapter.
func checkPairs(tensors []weights.Info) error {
	there := map[string]bool{}
	for _, t := range tensors {
		there[t.Name] = true
	}
	for _, t := range tensors {
		for _, p := range loraParts {
			if module, ok := strings.CutSuffix(t.Name, p.suffix); ok && !there[module+p.needs] {
				return fmt.Errorf("tensor %q: is missing, but %q needs it", module+p.needs, t.Name)
			}
		}
	}
	return nil
}

// claim adds a tensor to the uses of all indices on its axes.
func (l *Layout) claim(c *Claim) {
	l.Claims[c.Name] = c
	for i, a := range c.Axes {
		a.each(func(leaf *node, x *Index) { l.byName[x.Name].use(c.Name, i, leaf.sense != 0) })
	}
}

// loraPart is a kind of adapter tensor, such as lora_A.
type loraPart struct {
	suffix string // follows the module's path in the tensor's name
	needs  string // the suffix of the tensor that must be there too
	rank   int    // the dimension whose length is the rank; -1: none
	axes   func(base *Claim, shape []int) []*Axis
}

// loraParts are the kinds of LoRA tensors. The length of the rank's axis comes from the tensor's shape.
var loraParts = []loraPart{
	{".lora_A.weight", ".lora_B.weight", 0, func(c *Claim, s []int) []*Axis { return linearAxes(c, plainAxis(s, 0), c.input()) }},
	{".lora_B.weight", ".lora_A.weight", 1, func(c *Claim, s []int) []*Axis { return linearAxes(c, c.output(), plainAxis(s, 1)) }},
	{".lora_B.bias", ".lora_B.weight", -1, func(c *Claim, _ []int) []*Axis { return linearAxes(c, c.output()) }},
	{".lora_embedding_A", ".lora_embedding_B", 0, func(c *Claim, s []int) []*Axis { return embeddingAxes(c, plainAxis(s, 0), c.Axes[0]) }},
	{".lora_embedding_B", ".lora_embedding_A", 1, func(c *Claim, s []int) []*Axis { return embeddingAxes(c, c.Axes[1], plainAxis(s, 1)) }},
}

// kind returns the suffix of Claim.Kind for an adapter's tensor. The text before the suffix is the kind of the base's tensor.
func (p loraPart) kind() string {
	if p.suffix == "" {
		return " (adapter)"
	}
	return strings.TrimSuffix(p.suffix, ".weight")
}

// replacement is a tensor that replaces a whole tensor of the base: a trained bias or norm, or a module that is saved in full.
var replacement = loraPart{"", "", -1, func(c *Claim, _ []int) []*Axis { return c.Axes }}

func linearAxes(c *Claim, axes ...*Axis) []*Axis {
	if c.Role != Linear {
		return nil
	}
	return axes
}

func embeddingAxes(c *Claim, axes ...*Axis) []*Axis {
	if c.Role != Embedding {
		return nil
	}
	return axes
}

// input and output return a matrix' axes of inputs and outputs, in either storage order.
func (c *Claim) input() *Axis  { return c.Axes[1-c.OutAxis] }
func (c *Claim) output() *Axis { return c.Axes[c.OutAxis] }

// plainAxis returns an axis without an index.
func plainAxis(shape []int, i int) *Axis {
	n := 0
	if i < len(shape) {
		n = shape[i]
	}
	return &Axis{riders: []*node{{op: 'a', slot: -1, text: fmt.Sprint(n), length: n}}}
}

// fits reports whether the axes have the lengths of a tensor's shape.
func fits(axes []*Axis, shape []int) bool {
	return axes != nil && slices.EqualFunc(axes, shape, func(a *Axis, n int) bool { return a.Len() == n })
}

func describeBase(c *Claim) string {
	var shape []int
	for _, a := range c.Axes {
		shape = append(shape, a.Len())
	}
	return fmt.Sprintf("the base model's %s %q %v", c.Role, c.Name, shape)
}

// adapterRoot is the text before every module's path in the names of an adapter's tensors.
const adapterRoot = "base_model.model."

// baseOf finds the base's tensor that an adapter's tensor changes, and the kind of the change. base is empty if no tensor fits,
// or several do.
func baseOf(names paths, name string) (base string, part loraPart) {
	path, ok := strings.CutPrefix(name, adapterRoot)
	if !ok {
		return "", part
	}
	for _, p := range loraParts {
		if module, ok := strings.CutSuffix(path, p.suffix); ok {
			base = names.find(module + ".weight")
			if c := names.layout.Claims[base]; c != nil && len(c.Axes) != 2 {
				base = ""
			}
			return base, p
		}
	}
	return names.find(path), replacement
}

// paths finds a checkpoint's tensors by the module paths of a running model. A path and a tensor's name may begin with
// different words, and either may contain the word "model" anywhere. A path may have at most one word, such as
// "language_model" or "transformer", that the tensor's name lacks. If more words could be missing, a vision tower's layers
// could be mistaken for the language model's.
type paths struct {
	layout *Layout
	exact  map[string]bool
	whole  map[string]string // by the tensor's name without "model"; empty if several tensors share the name
	tails  map[string]string // by every ending of these names
}

func (l *Layout) paths() paths {
	p := paths{l, map[string]bool{}, map[string]string{}, map[string]string{}}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(l.Claims)), l.Unclaimed) {
		p.exact[name] = true
		short := withoutModel(name)
		once(p.whole, short, name)
		tail, ok := shorten(short)
		for range outerWords {
			if !ok {
				break
			}
			once(p.tails, tail, name)
			tail, ok = shorten(tail)
		}
	}
	return p
}

// once stores a value under a key. If the key has a value already, it stores the empty string.
func once(m map[string]string, key, value string) {
	if _, twice := m[key]; twice {
		value = ""
	}
	m[key] = value
}

// find returns the tensor that a path names; empty if no tensor fits, or several do.
func (p paths) find(path string) string {
	if p.exact[path] {
		return path
	}
	path = withoutModel(path)
	if name, ok := p.whole[path]; ok {
		return name
	}
	if name, ok := p.tails[path]; ok {
		return name
	}
	if tail, ok := shorten(path); ok && strings.Contains(tail, ".") {
		return p.whole[tail]
	}
	return ""
}

// outerWords is the largest number of words that a tensor's name may have before a module's path.
const outerWords = 3

func withoutModel(name string) string {
	words := strings.Split(name, ".")
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "model" }), ".")
}

// shorten removes the first word of a name.
func shorten(name string) (string, bool) {
	_, rest, ok := strings.Cut(name, ".")
	return rest, ok
}

// checkAdapterConfig returns an error for adapters that compute something else than [Adapter] describes.
func checkAdapterConfig(js []byte) error {
	if js == nil {
		return errors.New("adapter_config.json is missing")
	}
	var fields map[string]any
	if err := decode(js, &fields, false); err != nil {
		return fmt.Errorf("adapter_config.json: %w", err)
	}
	odd := ""
	switch {
	case fields["peft_type"] != "LORA":
		return fmt.Errorf("adapter_config.json: peft_type is %s, and only \"LORA\" is supported", spell(fields["peft_type"]))
	case fields["use_dora"] == true:
		odd = "use_dora" // DoRA's magnitudes are norms of weights that scaling changes
	case fields["layer_replication"] != nil:
		odd = "layer_replication" // the running model has more layers than the base
	case fields["use_bdlora"] != nil && fields["use_bdlora"] != false:
		odd = "use_bdlora" // the matrices are block diagonal
	case fields["use_qalora"] == true:
		odd = "use_qalora" // sums neighbouring inputs
	case changesBase(fields["init_lora_weights"]):
		odd = "init_lora_weights" // loading it changes the base
	default:
		return nil
	}
	return fmt.Errorf("adapter_config.json: %s is %s, which is not supported", odd, spell(fields[odd]))
}

// changesBase reports whether an init_lora_weights setting makes loading subtract the initial LoRA from the base.
func changesBase(init any) bool {
	s, _ := init.(string)
	for _, way := range []string{"pissa", "olora", "corda", "loftq", "lora_ga"} {
		if strings.HasPrefix(strings.ToLower(s), way) {
			return true
		}
	}
	return false
}
