package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
)

// config is a decoded config.json.
type config map[string]any

// readConfig decodes a config.json; numbers keep their spelling.
func readConfig(data []byte) (config, error) {
	var c config
	if err := decode(data, &c, false); err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	if c == nil {
		return nil, errors.New("config.json: holds null, not an object")
	}
	return c, nil
}

// decode reads one JSON value that fills data, with errors that say where.
func decode(data []byte, v any, strict bool) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if strict {
		d.DisallowUnknownFields()
	}
	err := d.Decode(v)
	if err == nil {
		if _, err := d.Token(); err != io.EOF {
			return fmt.Errorf("%s: more follows after the JSON value", lineColumn(data, d.InputOffset()))
		}
		return nil
	}
	var syntax *json.SyntaxError
	var mistyped *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: invalid JSON: %v", lineColumn(data, syntax.Offset), err)
	case errors.As(err, &mistyped) && mistyped.Field == "":
		return fmt.Errorf("holds a JSON %s, not an object", mistyped.Value)
	case errors.As(err, &mistyped):
		return fmt.Errorf("%s: field %q holds a JSON %s, which is not of type %s", lineColumn(data, mistyped.Offset), mistyped.Field, mistyped.Value, mistyped.Type.Kind())
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("invalid JSON: ends too early")
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

// lineColumn words a byte offset, both counted from 1.
func lineColumn(data []byte, offset int64) string {
	before := data[:max(0, min(int(offset)-1, len(data)))]
	line := bytes.Count(before, []byte("\n")) + 1
	return fmt.Sprintf("line %d, column %d", line, len(before)-bytes.LastIndexByte(before, '\n'))
}

// first finds the first field that is there and not null. Dots lead into nested objects.
func (c config) first(fields []string) (field string, value any, ok bool) {
	for _, field := range fields {
		var v any = map[string]any(c)
		for key := range strings.SplitSeq(field, ".") {
			object, _ := v.(map[string]any)
			v = object[key]
		}
		if v != nil {
			return field, v, true
		}
	}
	return "", nil, false
}

// length reads a field's value as a whole number from least to maxDim. A float without a
// fraction is one.
func length(field string, v any, least int) (int, error) {
	number, ok := v.(json.Number)
	if !ok {
		return 0, fmt.Errorf("config.json: %s is %s, not a whole number", field, spell(v))
	}
	f, err := strconv.ParseFloat(string(number), 64)
	switch {
	case err == nil && f != float64(int64(f)) && f < maxDim:
		return 0, fmt.Errorf("config.json: %s is %s, not a whole number", field, spell(v))
	case err != nil || f < float64(least) || f > maxDim:
		return 0, fmt.Errorf("config.json: %s is %s, beyond %d to %d", field, spell(v), least, maxDim)
	}
	return int(f), nil
}

// spell shows a value as JSON, shortened.
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

// strings reads a field that holds a string or a list of them; none where it is absent.
func (c config) strings(field string) ([]string, error) {
	_, v, ok := c.first([]string{field})
	if !ok {
		return nil, nil
	}
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	var all []string
	for _, v := range list {
		s, ok := v.(string)
		if !ok {
			return nil, fmt.Errorf("config.json: %s is %s, not a string", field, spell(v))
		}
		all = append(all, s)
	}
	return all, nil
}

// flag reads a truth value: the field itself, or, where is is given, whether the field is one of
// those strings or a list that has one of them.
func (c config) flag(f *flagSpec) (bool, error) {
	field, v, ok := c.first(f.Fields)
	if !ok {
		return f.Default, nil
	}
	if len(f.Is) == 0 {
		b, ok := v.(bool)
		if !ok {
			return false, fmt.Errorf("config.json: %s is %s, not true or false", field, spell(v))
		}
		return b, nil
	}
	values, err := c.strings(field)
	return meet(values, f.Is), err
}

// dtypes are the names that config.json gives to element types.
var dtypes = map[string]weights.DType{
	"bfloat16": weights.BF16, "float16": weights.F16, "half": weights.F16,
	"float32": weights.F32, "float": weights.F32, "float64": weights.F64,
	"float8_e4m3fn": weights.F8E4M3, "float8_e5m2": weights.F8E5M2, "int8": weights.I8,
}

// dtype reads "dtype" or, as older files call it, "torch_dtype"; BF16 where neither is there.
func (c config) dtype() (weights.DType, error) {
	field, v, ok := c.first([]string{"dtype", "torch_dtype"})
	if !ok {
		return weights.BF16, nil
	}
	s, _ := v.(string)
	d, ok := dtypes[strings.TrimPrefix(s, "torch.")]
	if !ok {
		return 0, fmt.Errorf("config.json: %s is %s, not an element type such as \"bfloat16\", \"float16\" or \"float32\"", field, spell(v))
	}
	return d, nil
}
