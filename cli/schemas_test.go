package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/cli/card"
	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/model"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/component"
	"github.com/lowtoggle/lowtoggle/transform/plan"
)

const schemaDir = "../docs/schemas"

// files are the documents that commands write into files, and documents other than reports.
var files = map[string]struct {
	value       any
	description string
}{
	"plan":        {plan.Plan{}, "A plan: the output of plan -o and plan --json, and the input of convert --plan."},
	"manifest":    {plan.Manifest{}, "lowtoggle.json beside converted weights."},
	"calibration": {cost.Calibration{}, "A card's calibration, as calibrate writes it."},
	"components":  {component.Model{}, "A card's power by component, as calibrate --components writes it."},
	"series":      {experiment.Series{}, "A measured series, as calibrate and reproduce write it."},
	"log":         {term.LogLine{}, "One line of --log json, on standard error."},
	"error":       {exit.Problem{}, "The document that a failed command prints with --json."},
}

// documents returns all schemas by name.
func documents(strict bool) map[string]map[string]any {
	s := &schemas{strict: strict}
	all := map[string]map[string]any{}
	for _, of := range []map[string][]any{model.Documents, card.Documents} {
		for name, types := range of {
			if name != "plan" {
				all[name] = s.document(name, "", types...)
			}
		}
	}
	for name, f := range files {
		types := []any{f.value}
		if name == "plan" {
			types = model.Documents[name]
		}
		all[name] = s.document(name, f.description, types...)
	}
	return all
}

// TestSchemas compares docs/schemas with the schemas of the types. -update writes them.
func TestSchemas(t *testing.T) {
	all := documents(false)
	have, err := listSchemas(schemaDir)
	if err != nil && !*update {
		t.Fatal(err)
	}
	for _, name := range have {
		if all[name] == nil && name != "recipe" { // the recipe's schema is written by hand, because recipes are YAML
			t.Errorf("%s%s is of no document", name, schemaSuffix)
		}
	}
	for name, doc := range all {
		want, err := encodeSchema(doc)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(schemaDir, name+schemaSuffix)
		if *update {
			if err := os.MkdirAll(schemaDir, 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, want, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(text)); diff != "" {
			t.Errorf("%s is stale; run go test ./cli -run TestSchemas -update: %s", file, diff)
		}
		if _, err := compileSchema(text); err != nil {
			t.Error(err)
		}
	}
}

// TestEveryCommandHasASchema: every command with --json has a schema.
func TestEveryCommandHasASchema(t *testing.T) {
	for _, cmd := range newApp(nil, nil).VisibleCommands() {
		for _, f := range cmd.Flags {
			if f.Names()[0] == "json" && model.Documents[cmd.Name] == nil && card.Documents[cmd.Name] == nil {
				t.Errorf("%s --json has no schema", cmd.Name)
			}
		}
	}
}

// TestSchemasRefuse: missing fields, unknown fields and values of another type are errors.
func TestSchemasRefuse(t *testing.T) {
	for doc, want := range map[string]bool{
		`{"output": "m", "tensors": 1, "elements": 2, "bytes": 3, "shards": 1, "seconds": 0.5}`:                  true,
		`{"output": "m", "tensors": 1, "elements": 2, "bytes": 3, "shards": 1}`:                                  false,
		`{"output": "m", "tensors": "1", "elements": 2, "bytes": 3, "shards": 1, "seconds": 0.5}`:                false,
		`{"output": "m", "tensors": 1, "elements": 2, "bytes": 3, "shards": 1, "seconds": 0.5, "new": 1}`:        false,
		`{"error": {"class": "usage", "message": "m", "hint": "h", "status": 2}}`:                                true,
		`{"error": {"class": "usage", "message": "m", "hint": "h"}}`:                                             false,
		`{"error": {"class": "usage", "message": "m", "hint": "h", "status": 2, "offset": "far"}, "tensors": 1}`: false,
	} {
		if err := validate("synth", []byte(doc)); (err == nil) != want {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

func compileSchema(text []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("schema.json")
}

// validate checks a document against a schema and against its strict form without other fields.
func validate(name string, document []byte) error {
	for _, strict := range []bool{false, true} {
		all := documents(strict)
		if all[name] == nil {
			return fmt.Errorf("there is no schema %q, only %s", name, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
		}
		text, err := encodeSchema(all[name])
		if err != nil {
			return err
		}
		s, err := compileSchema(text)
		if err != nil {
			return err
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
		if err != nil {
			return err
		}
		if err := s.Validate(value); err != nil {
			return fmt.Errorf("strict %v: %w", strict, err)
		}
	}
	return nil
}

// checkDocument checks the --json output of a command against its schema. Other text, such as help, is ignored.
func checkDocument(args []string, document []byte) error {
	if len(args) == 0 || !wantsJSON(args) || !json.Valid(document) {
		return nil
	}
	name := args[0]
	if model.Documents[name] == nil && card.Documents[name] == nil || bytes.HasPrefix(document, []byte("{\n  \"error\": ")) {
		name = "error"
	}
	return validate(name, document)
}
