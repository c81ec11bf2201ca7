package forward

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// config is a decoded config.json. Package arch reads the sizes; these are the fields that decide
// the arithmetic. It keeps the first error, so that reading is a list.
type config struct {
	fields map[string]any
	err    error
}

func readConfig(data []byte) *config {
	c := &config{}
	if data == nil {
		c.failf("is not there: put the model's beside its weights")
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

// lookup finds a field; nil where it is missing or null. Dots lead into nested objects.
func (c *config) lookup(name string) any {
	var v any = c.fields
	for key := range strings.SplitSeq(name, ".") {
		object, _ := v.(map[string]any)
		v = object[key]
	}
	return v
}

// get reads a field of the type of its default.
func get[T bool | string | float64](c *config, name string, missing T) T {
	v := c.lookup(name)
	if v == nil {
		return missing
	}
	t, ok := v.(T)
	if !ok {
		c.failf("%s is %v, not a value such as %v", name, v, missing)
		return missing
	}
	return t
}

// object says whether there is an object of that name.
func (c *config) object(name string) bool {
	v := c.lookup(name)
	_, ok := v.(map[string]any)
	if v != nil && !ok {
		c.failf("%s is %v, not an object", name, v)
	}
	return ok
}

// positive reads a finite number above 0.
func (c *config) positive(name string, missing float64) float64 {
	v := get(c, name, missing)
	if !(v > 0 && v <= math.MaxFloat64) {
		c.failf("%s is %v, not above 0", name, v)
		return missing
	}
	return v
}

// length reads a whole number above 0.
func (c *config) length(name string, missing int) int {
	return int(min(math.Ceil(c.positive(name, float64(missing))), math.MaxInt32))
}

// refuse notes fields that ask for what is not implemented.
func (c *config) refuse(must []field) {
	for _, f := range must {
		if v := c.lookup(f.name); v != nil && v != f.value {
			c.failf("%s is %v; the forward pass knows %v only", f.name, v, f.value)
		}
	}
	if c.lookup("quantization_config") != nil {
		c.failf("has a quantization_config, and the forward pass decodes no quantised weights: use the checkpoint that they were made from")
	}
}
