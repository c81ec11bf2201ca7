package decoder

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/lowtoggle/lowtoggle/internal/elementary"
)

// config is a decoded config.json. It reads the fields that determine the arithmetic; package arch reads the sizes. It keeps the
// first error, so callers need not check each field.
type config struct {
	fields map[string]any
	err    error
}

func readConfig(data []byte) *config {
	c := &config{}
	if data == nil {
		c.failf("is missing: put the model's config.json beside its weights")
	} else if err := json.Unmarshal(data, &c.fields); err != nil {
		c.failf("%v", err)
	}
	return c
}

func (c *config) failf(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("config.json: "+format, args...)
	}
}

// find returns a field, first from text_config, where multimodal models keep the fields of their language model. Dots separate
// the names of nested objects. there is false for an empty name.
func (c *config) find(name string) (v any, there bool) {
	if name == "" {
		return nil, false
	}
	if text, ok := c.fields["text_config"].(map[string]any); ok {
		if v, there = find(text, name); there {
			return v, true
		}
	}
	return find(c.fields, name)
}

func find(fields map[string]any, name string) (v any, there bool) {
	v = fields
	for key := range strings.SplitSeq(name, ".") {
		object, _ := v.(map[string]any)
		if v, there = object[key]; !there {
			return nil, false
		}
	}
	return v, true
}

// lookup returns a field; nil if it is missing or null.
func (c *config) lookup(name string) any {
	v, _ := c.find(name)
	return v
}

// get reads a field, whose type is the type of its default.
func get[T bool | string | float64](c *config, name string, missing T) T {
	v := c.lookup(name)
	if v == nil {
		return missing
	}
	t, ok := v.(T)
	if !ok {
		c.failf("%s is %v, but must be %s, such as the default, %v", name, v, kindOf(missing), missing)
		return missing
	}
	return t
}

// kindOf names the JSON type of a default.
func kindOf(v any) string {
	switch v.(type) {
	case bool:
		return "true or false"
	case string:
		return "a string"
	}
	return "a number"
}

// is reads a boolean; without a default, a missing field is false.
func (c *config) is(f field) bool {
	missing, _ := f.value.(bool)
	return get(c, f.name, missing)
}

// object reports whether a field is an object.
func (c *config) object(name string) bool {
	v := c.lookup(name)
	_, ok := v.(map[string]any)
	if v != nil && !ok {
		c.failf("%s is %v, but must be an object", name, v)
	}
	return ok
}

// positive reads a finite number above 0.
func (c *config) positive(name string, missing float64) float64 {
	v := get(c, name, missing)
	if !(v > 0 && v <= math.MaxFloat64) {
		c.failf("%s is %v, but must be above 0", name, v)
		return missing
	}
	return v
}

// factor reads a number above 0 and raises it to f's power.
func (c *config) factor(f factor) float64 {
	if f.name == "" {
		return 1
	}
	missing, _ := f.value.(float64)
	return elementary.Pow(c.positive(f.name, missing), f.power)
}

// length reads a whole number above 0.
func (c *config) length(name string, missing int) int {
	return toLength(c.positive(name, float64(missing)))
}

// toLength returns v rounded up to an int, at most math.MaxInt32.
func toLength(v float64) int { return int(min(math.Ceil(v), math.MaxInt32)) }

// count is length for a field whose default may be 0, which means none.
func (c *config) count(f field) int {
	missing, _ := f.value.(float64)
	if c.lookup(f.name) == nil {
		return int(missing)
	}
	return c.length(f.name, 0)
}

// bound reads a number above 0. Null gives 0, which means no bound, also if the default is a number.
func (c *config) bound(f field) float64 {
	v, there := c.find(f.name)
	missing, _ := f.value.(float64)
	switch {
	case there && v == nil:
		return 0
	case !there && missing == 0:
		return 0
	}
	return c.positive(f.name, missing)
}

// sameAs is a default: the value of the named field.
type sameAs string

// refuse records an error for fields with values that are not implemented.
func (c *config) refuse(must []field) {
	for _, f := range must {
		known := f.value
		if other, ok := known.(sameAs); ok {
			known = c.lookup(string(other))
		}
		if v := c.lookup(f.name); v != nil && !reflect.DeepEqual(v, known) {
			if known == nil {
				known = "null"
			}
			c.failf("%s is %v; the forward pass supports %v only", f.name, v, known)
		}
	}
}
