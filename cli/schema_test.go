package cli

import (
	"encoding"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/verify"
)

// modulePath is the path of the module. The comments of the module's types become descriptions.
const modulePath = "github.com/lowtoggle/lowtoggle/"

// schemas makes JSON schemas of Go types in their encoding/json form. With strict, fields that a type lacks are
// errors.
type schemas struct {
	strict   bool
	defs     map[string]any
	comments map[string]map[string]string // by package and "Type" or "Type.Field"
}

// document returns the schema of a document of one of the types.
func (s *schemas) document(title, description string, types ...any) map[string]any {
	s.defs = map[string]any{}
	var list []any
	for _, t := range types {
		list = append(list, s.of(reflect.TypeOf(t)))
	}
	problem := map[string]any{"type": "object", "required": []any{"error"}, "properties": map[string]any{"error": s.of(reflect.TypeFor[exit.Problem]())}}
	if len(types) == 1 && types[0] == (exit.Problem{}) {
		list = []any{problem}
	}
	if description == "" { // the document is the output of a command
		list = append(list, problem)
		description = "The document that lowtoggle " + title + " --json prints. If the document has only the field error, the command failed."
	}
	doc := map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, "description": description, "$defs": s.defs}
	if len(list) == 1 {
		doc["allOf"] = list
	} else {
		doc["anyOf"] = list
	}
	return doc
}

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// special are the schemas of types with their own JSON encoding.
var special map[reflect.Type]func(s *schemas, t reflect.Type) any

func init() {
	special = map[reflect.Type]func(s *schemas, t reflect.Type) any{
		reflect.TypeFor[time.Time](): func(*schemas, reflect.Type) any { return map[string]any{"type": "string", "format": "date-time"} },
		reflect.TypeFor[plan.Step](): func(*schemas, reflect.Type) any {
			text := map[string]any{"type": "string"}
			return map[string]any{"type": "object", "required": []any{"pass"}, "properties": map[string]any{"pass": text, "index": text, "tensor": text},
				"description": "One decision of a pass on a tensor or an index. The pass's own data stand under the pass's name."}
		},
		reflect.TypeFor[plan.Plan](): func(s *schemas, t reflect.Type) any {
			return map[string]any{"anyOf": []any{s.object(t), s.of(reflect.TypeFor[plan.Packed]())}}
		},
		reflect.TypeFor[verify.Tensor](): func(s *schemas, t reflect.Type) any {
			o := s.object(t)
			o["properties"].(map[string]any)["bits_zeroed"] = map[string]any{"type": "integer",
				"description": "low mantissa bits that are zero in every finite value of the output and were not in the source; absent for types that are not decoded"}
			return o
		},
		reflect.TypeFor[power.Info](): func(s *schemas, t reflect.Type) any {
			o := s.object(t)
			o["properties"].(map[string]any)["id"] = map[string]any{"type": "string", "description": "short id, from a hash of the card's UUID"}
			return o
		},
		reflect.TypeFor[measure.CardResults](): func(s *schemas, t reflect.Type) any {
			return map[string]any{"anyOf": []any{s.of(reflect.TypeFor[measure.Result]()), s.object(t)}}
		},
		reflect.TypeFor[measure.ModelReport](): func(s *schemas, t reflect.Type) any {
			return map[string]any{"anyOf": []any{s.of(reflect.TypeFor[measure.CardEnergy]()), s.object(t)}}
		},
	}
}

// of returns the schema of a type. For a named struct, it is a reference to a definition.
func (s *schemas) of(t reflect.Type) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	make, isSpecial := special[t]
	p := reflect.PointerTo(t)
	switch {
	case !isSpecial && p.Implements(marshaler):
		return true // any value, because the type encodes itself
	case !isSpecial && p.Implements(textMarshaler):
		return map[string]any{"type": "string"}
	case t.Kind() == reflect.Struct && t.Name() != "":
		name := path.Base(t.PkgPath()) + "." + strings.NewReplacer("[", "_", "]", "", "/", "_", "*", "").Replace(t.Name())
		if s.defs[name] == nil {
			s.defs[name] = true // for a type that contains itself
			if isSpecial {
				s.defs[name] = make(s, t)
			} else {
				s.defs[name] = s.object(t)
			}
		}
		return map[string]any{"$ref": "#/$defs/" + name}
	}
	switch t.Kind() {
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return true // bytes in base64, or raw JSON
		}
		return map[string]any{"type": "array", "items": s.of(t.Elem())}
	case reflect.Array:
		return map[string]any{"type": "array", "items": s.of(t.Elem()), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		return s.object(t)
	}
	return true
}

// object returns the schema of a struct from its fields.
func (s *schemas) object(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []any{}
	s.fields(t, true, properties, &required)
	o := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		o["required"] = required
	}
	if s.strict {
		properties["error"] = true
		o["additionalProperties"] = false
	}
	if text := s.comment(t.PkgPath(), t.Name()); text != "" {
		o["description"] = text
	}
	return o
}

// fields adds a struct's fields. Fields of embedded structs follow the struct's own fields.
func (s *schemas) fields(t reflect.Type, must bool, properties map[string]any, required *[]any) {
	var embedded []reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			embedded = append(embedded, f)
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if properties[name] != nil {
			continue // an outer field hides it
		}
		value := s.of(f.Type)
		if text := s.comment(t.PkgPath(), t.Name()+"."+f.Name); text != "" {
			value = map[string]any{"allOf": []any{value}, "description": text}
			if inner, ok := value.(map[string]any)["allOf"].([]any)[0].(map[string]any); ok && inner["$ref"] == nil && inner["description"] == nil {
				inner["description"] = text
				value = inner
			}
		}
		properties[name] = value
		if must && !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			*required = append(*required, name)
		}
	}
	for _, f := range embedded {
		inner, always := f.Type, must
		if inner.Kind() == reflect.Pointer {
			inner, always = inner.Elem(), must && !optional[inner.Elem().Name()]
		}
		if inner.Kind() == reflect.Struct {
			s.fields(inner, always, properties, required)
		}
	}
}

// optional are types whose embedded pointers may be nil.
var optional = map[string]bool{"Activity": true, "evalJSON": true, "Prediction": true, "Model": true}

// comment returns the comment of a type or field of the module, in one line.
func (s *schemas) comment(pkg, name string) string {
	dir, ok := strings.CutPrefix(pkg, modulePath)
	if !ok {
		return ""
	}
	if s.comments == nil {
		s.comments = map[string]map[string]string{}
	}
	if s.comments[dir] == nil {
		s.comments[dir] = commentsIn(filepath.Join("..", filepath.FromSlash(dir)))
	}
	return s.comments[dir][name]
}

func commentsIn(dir string) map[string]string {
	found := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return found
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, parser.ParseComments)
		if err != nil {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			decl, ok := n.(*ast.GenDecl)
			if !ok || decl.Tok != token.TYPE {
				return true
			}
			for _, spec := range decl.Specs {
				t := spec.(*ast.TypeSpec)
				doc := t.Doc
				if doc == nil {
					doc = decl.Doc
				}
				found[t.Name.Name] = oneLine(doc.Text())
				if fields, ok := t.Type.(*ast.StructType); ok {
					for _, f := range fields.Fields.List {
						for _, name := range f.Names {
							found[t.Name.Name+"."+name.Name] = oneLine(f.Doc.Text() + " " + f.Comment.Text())
						}
					}
				}
			}
			return false
		})
	}
	return found
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// encodeSchema formats a schema for a file.
func encodeSchema(doc map[string]any) ([]byte, error) {
	js, err := json.MarshalIndent(doc, "", "  ")
	return append(js, '\n'), err
}

// listSchemas returns the names of the files in docs/schemas, without their suffix.
func listSchemas(dir string) (names []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+schemaSuffix))
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), schemaSuffix))
	}
	slices.Sort(names)
	if err == nil && names == nil {
		err = fmt.Errorf("%s: %w", dir, fs.ErrNotExist)
	}
	return names, err
}

const schemaSuffix = ".schema.json"
