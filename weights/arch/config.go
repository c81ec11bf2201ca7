package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
)

// config is a decoded config.json: the objects in which fields are looked up, in this order. The last object is the whole
// file. The object "text_config" of multimodal models comes before it.
type config []map[string]any

// readConfig decodes a config.json; numbers keep their spelling.
func readConfig(data []byte) (config, error) {
	var all map[string]any
	if err := decode(data, &all, false); err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	if all == nil {
		return nil, errors.New("config.json: holds null, not an object: copy the file again")
	}
	v := all["text_config"]
	if v == nil {
		return config{all}, nil
	}
	text, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("config.json: text_config is %s, not an object", spell(v))
	}
	return config{text, all}, nil
}

// top returns the config without its text_config.
func (c config) top() config { return c[len(c)-1:] }

// decode reads the one JSON value in data into v. Errors name line and column.
func decode(data []byte, v any, strict bool) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if strict {
		d.DisallowUnknownFields()
	}
	err := d.Decode(v)
	if err == nil {
		if _, err := d.Token(); err != io.EOF {
			return fmt.Errorf("%s: text follows the JSON value: remove the text, or copy the file again", lineColumn(data, d.InputOffset()))
		}
		return nil
	}
	var syntax *json.SyntaxError
	var mistyped *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: invalid JSON: %v: correct this place, or copy the file again", lineColumn(data, syntax.Offset), err)
	case errors.As(err, &mistyped) && mistyped.Field == "":
		return fmt.Errorf("holds a JSON %s, not an object: copy the file again", mistyped.Value)
	case errors.As(err, &mistyped):
		return fmt.Errorf("%s: field %q holds a JSON %s, but must be %s", lineColumn(data, mistyped.Offset), mistyped.Field, mistyped.Value, jsonType(mistyped.Type.Kind()))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("invalid JSON: ends too early: copy the file again")
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

// jsonType returns the JSON type of a Go type, for messages.
func jsonType(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return "a whole number"
}

// lineColumn returns the text "line L, column C" for a byte offset; both count from 1.
func lineColumn(data []byte, offset int64) string {
	before := data[:max(0, min(int(offset)-1, len(data)))]
	line := bytes.Count(before, []byte("\n")) + 1
	return fmt.Sprintf("line %d, column %d", line, len(before)-bytes.LastIndexByte(before, '\n'))
}

// first returns the first of the fields that is present and not null. Dots separate the names of nested objects.
func (c config) first(fields []string) (field string, value any, ok bool) {
	for _, object := range c {
		for _, field := range fields {
			if v := lookup(object, field); v != nil {
				return field, v, true
			}
		}
	}
	return "", nil, false
}

func lookup(v any, field string) any {
	for key := range strings.SplitSeq(field, ".") {
		object, _ := v.(map[string]any)
		v = object[key]
	}
	return v
}

// labels is the field that lists the names of classes. The number of names is a dimension.
const labels = "id2label"

// length reads a field's value as a whole number from least to maxDim. A float without a fraction is accepted. For labels, length
// returns the number of names.
func length(field string, v any, least int) (int, error) {
	if object, ok := v.(map[string]any); ok && field == labels {
		v = json.Number(strconv.Itoa(len(object)))
	}
	number, ok := v.(json.Number)
	if !ok {
		return 0, fmt.Errorf("config.json: %s is %s, not a whole number", field, spell(v))
	}
	f, err := strconv.ParseFloat(string(number), 64)
	switch {
	case err == nil && f != float64(int64(f)) && f < maxDim:
		return 0, fmt.Errorf("config.json: %s is %s, not a whole number", field, spell(v))
	case err != nil || f < float64(least) || f > maxDim:
		return 0, fmt.Errorf("config.json: %s is %s, outside %d to %d", field, spell(v), least, maxDim)
	}
	return int(f), nil
}

// fraction reads a field's value as a number from 0 to 1.
func fraction(field string, v any) (float64, error) {
	number, _ := v.(json.Number)
	f, err := number.Float64()
	if err != nil || f < 0 || f > 1 {
		return 0, fmt.Errorf("config.json: %s is %s, not a number from 0 to 1", field, spell(v))
	}
	return f, nil
}

// spell returns a value as JSON, shortened for messages.
func spell(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("a %T", v)
	}
	if len(b) > 60 {
		return string(b[:57]) + "..."
	}
	return string(b)
}

// strings reads a field that holds a string or a list of strings. It returns none if the field is absent.
func (c config) strings(field string) ([]string, error) {
	_, v, ok := c.first([]string{field})
	if !ok {
		return nil, nil
	}
	var all []string
	for _, v := range list(v) {
		s, ok := v.(string)
		if !ok {
			return nil, fmt.Errorf("config.json: %s is %s, not a string", field, spell(v))
		}
		all = append(all, s)
	}
	return all, nil
}

// list returns v as a list; a single value becomes a list of one.
func list(v any) []any {
	if all, ok := v.([]any); ok {
		return all
	}
	return []any{v}
}

// spelt returns a value, or the values of a list, as strings.
func spelt(field string, v any) ([]string, error) {
	var all []string
	for _, v := range list(v) {
		switch v := v.(type) {
		case string:
			all = append(all, v)
		case json.Number, bool:
			all = append(all, fmt.Sprint(v))
		default:
			return nil, fmt.Errorf("config.json: %s is %s, not a string, a number or true or false", field, spell(v))
		}
	}
	return all, nil
}

// flag computes a flag from config.json by the rule in the family file: the field is present, differs from another field, is
// in a list of strings, or is true.
func (c config) flag(f *flagSpec) (bool, error) {
	field, v, ok := c.first(f.Fields)
	switch {
	case !ok:
		return f.Default, nil
	case f.Present:
		return true, nil
	case len(f.Unlike) > 0:
		_, other, ok := c.first(f.Unlike)
		return ok && !same(v, other), nil
	case len(f.Is) > 0:
		words, err := spelt(field, v)
		return meet(words, f.Is), err
	}
	b, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("config.json: %s is %s, not true or false", field, spell(v))
	}
	return b, nil
}

// same reports whether two JSON values are equal. Numbers are compared by value, not by spelling.
func same(a, b any) bool {
	x, ok := a.(json.Number)
	y, ok2 := b.(json.Number)
	if !ok || !ok2 {
		return reflect.DeepEqual(a, b)
	}
	f, _ := x.Float64()
	g, _ := y.Float64()
	return f == g
}

// ConfigDType returns the element type in which runtimes load the model: the value of "dtype" in config.json or, in older
// files, of "torch_dtype". It returns BF16 if both are absent. An unknown type is an error.
func ConfigDType(configJSON []byte) (weights.DType, error) {
	c, err := readConfig(configJSON)
	if err != nil {
		return 0, err
	}
	return c.dtype()
}

// dtype returns the value of "dtype" or, in older files, "torch_dtype"; BF16 if both are absent.
func (c config) dtype() (weights.DType, error) {
	field, v, ok := c.first([]string{"dtype", "torch_dtype"})
	if !ok {
		return weights.BF16, nil
	}
	s, _ := v.(string)
	d, ok := weights.ParseTorch(s)
	if !ok {
		return 0, fmt.Errorf("config.json: %s is %s, not an element type such as \"bfloat16\", \"float16\" or \"float32\"", field, spell(v))
	}
	return d, nil
}
