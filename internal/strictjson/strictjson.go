// Package strictjson finds missing fields in a JSON document. encoding/json reads them as zeros.
package strictjson

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Missing returns the path of the first field of of's type that is missing or null in the document, such as
// "power.static_watts.low". If no field is missing, it returns "". Fields tagged omitempty may be absent. The decoder
// reports values of another kind than the field's.
func Missing(document []byte, of any) string {
	return strings.TrimPrefix(missing(document, reflect.TypeOf(of)), ".")
}

func missing(document json.RawMessage, t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return missing(document, t.Elem())
	case reflect.Slice:
		var list []json.RawMessage
		if json.Unmarshal(document, &list) != nil {
			return ""
		}
		for i, item := range list {
			if path := missing(item, t.Elem()); path != "" {
				return fmt.Sprintf("[%d]%s", i, path)
			}
		}
	case reflect.Struct:
		var fields map[string]json.RawMessage
		if json.Unmarshal(document, &fields) != nil {
			return ""
		}
		for i := range t.NumField() {
			f := t.Field(i)
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			value, ok := fields[name]
			if !ok || string(value) == "null" {
				if strings.Contains(options, "omitempty") {
					continue
				}
				return "." + name
			}
			if path := missing(value, f.Type); path != "" {
				return "." + name + path
			}
		}
	}
	return ""
}
