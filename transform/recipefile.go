package transform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/internal/spelling"
	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// recipeFields are the fields of a recipe's file. docs/recipes.md and docs/schemas/recipe.schema.json describe them.
var recipeFields = []struct {
	name string
	read func(r *Recipe, n *yaml.Node) error
}{
	{"name", func(r *Recipe, n *yaml.Node) error { return readText(n, &r.Name) }},
	{"doc", func(r *Recipe, n *yaml.Node) error { return readText(n, &r.Doc) }},
	{"passes", func(r *Recipe, n *yaml.Node) error { return readPasses(n, &r.Passes) }},
	{"in_decode", func(r *Recipe, n *yaml.Node) error { return readPasses(n, &r.InDecode) }},
	{"on_codes", func(r *Recipe, n *yaml.Node) error { return readPasses(n, &r.OnCodes) }},
	{"min_snr_db", func(r *Recipe, n *yaml.Node) error { return readSNR(n, &r.MinSNR) }},
	{"with_tokens", func(r *Recipe, n *yaml.Node) error { return readPasses(n, &r.WithTokens) }},
	{"max_loss", func(r *Recipe, n *yaml.Node) error { return readShare(n, &r.MaxLoss) }},
	{"ignore", func(r *Recipe, n *yaml.Node) error { return readPatterns(n, &r.Ignore) }},
	{"only", func(r *Recipe, n *yaml.Node) error { return readPatterns(n, &r.Only) }},
	{"routers", func(r *Recipe, n *yaml.Node) error { return readSwitch(n, &r.Routers) }},
	{"trust_family", func(r *Recipe, n *yaml.Node) error { return readSwitch(n, &r.TrustFamily) }},
}

// readRecipe reads a recipe in YAML or JSON from a file. Errors name the line and the field.
func readRecipe(path string) (Recipe, error) {
	data, err := bounded.ReadFile(path, bounded.Recipe)
	if err != nil {
		return Recipe{}, err
	}
	r := Recipe{Name: path}
	if err := r.decode(data); err != nil {
		return Recipe{}, fmt.Errorf("%s%w; docs/recipes.md describes recipes", path, err)
	}
	return r, nil
}

// fieldError is an error in a line of a recipe. field is the field, or empty. The text begins with a colon and
// follows the file's name.
type fieldError struct {
	line  int
	field string
	err   error
}

func (e *fieldError) Error() string {
	text := fmt.Sprintf(":%d: ", e.line)
	if e.field != "" {
		text += e.field + ": "
	}
	return text + e.err.Error()
}

func (e *fieldError) Unwrap() error { return e.err }

// decode decodes the file's content.
func (r *Recipe) decode(data []byte) error {
	if json.Valid(data) { // YAML allows no tabs between values; JSON has no tabs within strings
		data = bytes.ReplaceAll(data, []byte("\t"), []byte(" "))
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return &fieldError{1, "", errors.New("the file is empty: a recipe needs at least the field passes")}
	case err != nil:
		return yamlError(err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return &fieldError{max(1, doc.Line), "", errors.New("the file has a second document: write one recipe in each file")}
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return &fieldError{max(1, doc.Line), "", errors.New("is not a list of fields: write one field in each line, such as passes: grid,round")}
	}
	return r.readFields(doc.Content[0])
}

// yamlError rewords an error of the YAML parser, which gives the line in its text.
func yamlError(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if line, what, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(line); err == nil {
				return &fieldError{n, "", errors.New("is not valid YAML: " + what)}
			}
		}
	}
	return &fieldError{1, "", errors.New("is not valid YAML: " + text)}
}

func (r *Recipe) readFields(fields *yaml.Node) error {
	var names []string
	for _, f := range recipeFields {
		names = append(names, f.name)
	}
	seen := map[string]int{} // lines by field
	for i := 0; i+1 < len(fields.Content); i += 2 {
		key, value := fields.Content[i], fields.Content[i+1]
		at := func(err error) error { return &fieldError{key.Line, key.Value, err} }
		j := slices.Index(names, key.Value)
		switch {
		case key.Kind == yaml.ScalarNode && (strings.HasSuffix(key.Value, "_stage") || strings.HasSuffix(key.Value, "_modifiers")):
			return at(fmt.Errorf("belongs to a recipe of llm-compressor: lowtoggle's fields are %s", strings.Join(names, ", ")))
		case key.Kind != yaml.ScalarNode || j < 0:
			return at(fmt.Errorf("there is no such field%s: the fields are %s", spelling.DidYouMean("", key.Value, names), strings.Join(names, ", ")))
		case seen[key.Value] > 0:
			return at(errors.New("occurs a second time: remove one"))
		case value.Kind == yaml.AliasNode || value.Anchor != "":
			return at(errors.New("anchors and aliases are not supported: write the value out"))
		}
		seen[key.Value] = key.Line
		if value.Tag == "!!null" {
			return at(errors.New("has no value: give one, or remove the field"))
		}
		if err := recipeFields[j].read(r, value); err != nil {
			return &fieldError{value.Line, key.Value, err}
		}
	}
	if r.Passes == "" {
		return &fieldError{max(1, fields.Line), "passes", errors.New("is missing: name the passes, as in passes: grid,round")}
	}
	if r.MaxLoss != nil && r.WithTokens == "" {
		return &fieldError{seen["max_loss"], "max_loss", errors.New("needs with_tokens, the passes that spend this budget: add with_tokens: " + searched)}
	}
	if _, err := r.Selector(); err != nil { // each list was checked by itself
		return &fieldError{max(seen["ignore"], seen["only"]), "", err}
	}
	return nil
}

// kindOf describes the kind of a value, for messages.
func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.MappingNode:
		return "a group of fields"
	case n.Kind == yaml.AliasNode:
		return "an alias"
	}
	switch n.Tag {
	case "!!int", "!!float":
		return "the number " + n.Value
	case "!!bool":
		return n.Value
	case "!!null":
		return "nothing"
	}
	return strconv.Quote(n.Value)
}

func readText(n *yaml.Node, to *string) error {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
		return fmt.Errorf("is %s: write text, in quotes if necessary", kindOf(n))
	}
	*to = n.Value
	return nil
}

// readTexts reads a list of strings, or one string.
func readTexts(n *yaml.Node) (list []string, err error) {
	if n.Kind != yaml.SequenceNode {
		var one string
		if err := readText(n, &one); err != nil {
			return nil, err
		}
		return []string{one}, nil
	}
	for _, item := range n.Content {
		if item.Kind == yaml.AliasNode || item.Anchor != "" {
			return nil, errors.New("anchors and aliases are not supported: write the value out")
		}
		var text string
		if err := readText(item, &text); err != nil {
			return nil, fmt.Errorf("line %d %w", item.Line, err)
		}
		list = append(list, text)
	}
	return list, nil
}

func readPasses(n *yaml.Node, to *string) error {
	list, err := readTexts(n)
	if err != nil && n.Kind != yaml.SequenceNode {
		return fmt.Errorf("is %s: write passes as text, such as grid,round, or as a list", kindOf(n))
	}
	if err != nil {
		return err
	}
	*to = strings.Join(list, ",")
	_, err = ParsePasses(*to)
	return err
}

func readPatterns(n *yaml.Node, to *[]string) (err error) {
	if *to, err = readTexts(n); err != nil {
		return err
	}
	_, err = plan.Selection{Ignore: *to}.Selector()
	return err
}

func readSwitch(n *yaml.Node, to *bool) error {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" || n.Decode(to) != nil {
		return fmt.Errorf("is %s: write true or false", kindOf(n))
	}
	return nil
}

func readSNR(n *yaml.Node, to **float64) error {
	var v float64
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" && n.Tag != "!!float" || n.Decode(&v) != nil || !(v >= 0 && v <= 200) {
		return fmt.Errorf("is %s: write a number of decibels from 0 to 200", kindOf(n))
	}
	*to = &v
	return nil
}

// readShare reads a share such as 0.001 or "0.1%".
func readShare(n *yaml.Node, to **float64) error {
	number, percent := strings.CutSuffix(n.Value, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	if n.Kind != yaml.ScalarNode || err != nil || n.Tag == "!!str" && !percent || !(v > 0 && v <= 1) || math.IsNaN(v) {
		return fmt.Errorf(`is %s: write a share such as 0.001 or 0.1%%, above 0 and up to 100%%`, kindOf(n))
	}
	*to = &v
	return nil
}
