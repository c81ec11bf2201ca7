package reference

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
)

// model is a checkpoint with its config.json. Its methods panic with a problem. Run recovers it and returns it as an
// error.
type model struct {
	file    *weights.Model
	fields  map[string]any
	decoded map[string][]float64
}

// problem describes a fault of a checkpoint.
type problem struct{ error }

func failf(format string, args ...any) { panic(problem{fmt.Errorf(format, args...)}) }

func newModel(m *weights.Model) (*model, error) {
	p := &model{file: m, decoded: map[string][]float64{}}
	if err := json.Unmarshal(m.Config, &p.fields); err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	if text, ok := p.fields["text_config"].(map[string]any); ok { // the language model of a larger model
		maps.Copy(p.fields, text)
	}
	return p, nil
}

// field returns a field of config.json; nil if the field is missing or null. Dots separate the names of nested
// fields.
func (p *model) field(name string) any {
	var v any = p.fields
	for key := range strings.SplitSeq(name, ".") {
		object, _ := v.(map[string]any)
		v = object[key]
	}
	return v
}

func read[T any](p *model, name string, missing T) T {
	switch v := p.field(name).(type) {
	case nil:
		return missing
	case T:
		return v
	default:
		failf("config.json: %s is %v, not a value such as %v", name, v, missing)
		return missing
	}
}

func (p *model) number(name string, missing float64) float64 { return read(p, name, missing) }
func (p *model) is(name string, missing bool) bool           { return read(p, name, missing) }
func (p *model) text(name, missing string) string            { return read(p, name, missing) }

// presume sets the architecture's default for a field that config.json leaves out.
func (p *model) presume(name string, value any) {
	if _, there := p.fields[name]; !there {
		p.fields[name] = value
	}
}

// optionalNumber is number, with 0 for null.
func (p *model) optionalNumber(name string, missing float64) float64 {
	if v, there := p.fields[name]; there && v == nil {
		return 0
	}
	return p.number(name, missing)
}

// count returns an integer field. Without a default, the field is required.
func (p *model) count(name string, missing ...int) int {
	if len(missing) == 0 && p.field(name) == nil {
		failf("config.json: %s is missing", name)
	}
	v := 0.0
	if len(missing) > 0 {
		v = float64(missing[0])
	}
	return int(p.number(name, v))
}

// headless reports whether config.json names an architecture without a head.
func (p *model) headless() bool {
	names, _ := p.field("architectures").([]any)
	return len(names) > 0 && !p.ends("LM", "LMHeadModel", "ForConditionalGeneration")
}

// ends reports whether config.json names an architecture with this suffix.
func (p *model) ends(tasks ...string) bool {
	names, _ := p.field("architectures").([]any)
	for _, name := range names {
		s, _ := name.(string)
		for _, task := range tasks {
			if strings.HasSuffix(s, task) {
				return true
			}
		}
	}
	return false
}

// under returns the first prefix under which the checkpoint has the tensor; if none has, the first prefix.
func (p *model) under(name string, prefixes ...string) string {
	for _, prefix := range prefixes {
		if p.has(prefix + name) {
			return prefix
		}
	}
	return prefixes[0]
}

// has reports whether the checkpoint has a tensor.
func (p *model) has(name string) bool {
	_, ok := p.file.Tensor(name)
	return ok
}

// values returns a tensor's values. The tensor is required. Values are decoded once and must not be changed.
func (p *model) values(name string) []float64 {
	if v := p.decoded[name]; v != nil {
		return v
	}
	t, ok := p.file.Tensor(name)
	if !ok {
		failf("the checkpoint has no tensor %q", name)
	}
	f, ok := t.DType.Format()
	if !ok {
		failf("tensor %q: values of type %s are not decoded", name, t.DType)
	}
	values := make([]float64, t.Len())
	for i := range values {
		values[i] = float64(f.Value(f.Elem(t.Data, i)))
	}
	p.decoded[name] = values
	return values
}

// optional is values, but returns nil if the tensor is missing.
func (p *model) optional(name string) []float64 {
	if !p.has(name) {
		return nil
	}
	return p.values(name)
}

// row returns row i of a tensor with width values in each row.
func (p *model) row(name string, i, width int) []float64 {
	v := p.values(name)
	if i < 0 || (i+1)*width > len(v) {
		failf("tensor %q: has no row %d of %d values", name, i, width)
	}
	return v[i*width : (i+1)*width]
}

// linear returns w·x + b for the tensors name.weight[out, in] and name.bias, which is optional.
func (p *model) linear(name string, x []float64) []float64 {
	return p.affine(name+".weight", name+".bias", x, false)
}

// conv1D is linear for a weight stored [in, out].
func (p *model) conv1D(name string, x []float64) []float64 {
	return p.affine(name+".weight", name+".bias", x, true)
}

func (p *model) affine(weight, bias string, x []float64, inputsFirst bool) []float64 {
	w := p.values(weight)
	if len(w)%len(x) != 0 {
		failf("tensor %q: %d values for %d inputs", weight, len(w), len(x))
	}
	y := make([]float64, len(w)/len(x))
	for o := range y {
		for i, v := range x {
			if inputsFirst {
				y[o] += w[i*len(y)+o] * v
			} else {
				y[o] += w[o*len(x)+i] * v
			}
		}
	}
	if b := p.optional(bias); b != nil {
		y = add(y, b)
	}
	return y
}
