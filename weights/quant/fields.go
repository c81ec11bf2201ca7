package quant

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// mostDepth bounds how deeply a config's values are nested.
const mostDepth = 32

// reader reads typed values from an object. It keeps the first error.
type reader struct {
	config *config
	values map[string]any
	path   string // the object's path in the config
	err    error
}

func (r *reader) keep(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) fail(field string, v any, want string) {
	js, _ := json.Marshal(v)
	if len(js) > 60 {
		js = append(js[:57:57], "..."...)
	}
	r.keep(fmt.Errorf("%s is %s, not %s", r.config.at(strings.Trim(r.path+"."+field, ".")), js, want))
}

// text reads a string; empty if the field is absent.
func (r *reader) text(field string) string {
	v := r.values[field]
	s, ok := v.(string)
	if v != nil && !ok {
		r.fail(field, v, "a string")
	}
	return s
}

// number reads a whole number from least to most; 0 if the field is absent.
func (r *reader) number(field string, least, most int64) int {
	v := r.values[field]
	if v == nil {
		return 0
	}
	n, ok := whole(v)
	if !ok || n < least || n > most {
		r.fail(field, v, fmt.Sprintf("a whole number from %d to %d", least, most))
		return 0
	}
	return int(n)
}

func whole(v any) (int64, bool) {
	number, _ := v.(json.Number)
	n, err := strconv.ParseInt(string(number), 10, 64)
	return n, err == nil
}

// pair reads two whole numbers above 0; zeros if the field is absent.
func (r *reader) pair(field string) (p [2]int) {
	v := r.values[field]
	if v == nil {
		return p
	}
	list, _ := v.([]any)
	if len(list) != 2 {
		r.fail(field, v, "a list of two whole numbers")
		return p
	}
	for i, v := range list {
		n, ok := whole(v)
		if !ok || n < 1 || n > 1<<31-1 {
			r.fail(field, list, "a list of two whole numbers from 1 to 2147483647")
			return [2]int{}
		}
		p[i] = int(n)
	}
	return p
}

// strings reads a list of strings.
func (r *reader) strings(field string) (list []string) {
	v := r.values[field]
	all, ok := v.([]any)
	if v != nil && !ok {
		r.fail(field, v, "a list of strings")
	}
	for _, v := range all {
		s, ok := v.(string)
		if !ok {
			r.fail(field, v, "a list of strings")
		}
		list = append(list, s)
	}
	return list
}

// object reads an object; nil if the field is absent.
func (r *reader) object(field string) map[string]any {
	v := r.values[field]
	o, ok := v.(map[string]any)
	if v != nil && !ok {
		r.fail(field, v, "an object")
	}
	return o
}

// ignored reads the list of modules that are not quantised from the first of the fields that has entries.
func (r *reader) ignored(fields ...string) {
	r.config.ignoring = fields[0]
	for _, field := range fields {
		if list := r.strings(field); len(list) > 0 {
			slices.Sort(list)
			r.config.ignore, r.config.ignoring = list, field
			return
		}
	}
}

// parseObject reads a JSON object and keeps the spelling of numbers. Duplicate keys and deep nesting are errors.
func parseObject(js []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(js))
	d.UseNumber()
	v, err := parseValue(d, 0)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("text follows the JSON value")
		}
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = errors.New("the JSON ends too early")
	}
	if err != nil {
		return nil, err
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("is not a JSON object")
	}
	return object, nil
}

func parseValue(d *json.Decoder, depth int) (any, error) {
	if depth > mostDepth {
		return nil, fmt.Errorf("values are nested more than %d levels deep", mostDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		object := map[string]any{}
		for d.More() {
			t, err := d.Token()
			if err != nil {
				return nil, err
			}
			key := t.(string) // the decoder allows only strings here
			if _, twice := object[key]; twice {
				return nil, fmt.Errorf("key %q appears twice", key)
			}
			if object[key], err = parseValue(d, depth+1); err != nil {
				return nil, err
			}
		}
		_, err := d.Token()
		return object, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := parseValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	}
	return t, nil
}
