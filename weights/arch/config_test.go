package arch

import (
	"reflect"
	"strings"
	"testing"
)

// reading is a family of a single tensor. Its flags and dims use every way to read a field.
const reading = `{"family": "reading", "model_types": ["reading"],
	"flags": [
		{"name": "there", "fields": ["a", "b.c"], "present": true},
		{"name": "apart", "fields": ["embedding"], "unlike": ["width", "size"]},
		{"name": "two", "fields": ["kind"], "is": ["2", "true"]}],
	"dims": [
		{"name": "size", "fields": ["size"]},
		{"name": "labels", "fields": ["num_labels", "id2label"], "value": "2"},
		{"name": "part", "fields": ["share"], "of": "size", "min": 0, "value": "size / 2"}],
	"tensors": [{"name": "w", "role": "embedding", "axes": ["size"]}]}`

func TestReadFields(t *testing.T) {
	f := mustParse(t, reading)
	for _, c := range []struct {
		config string
		flags  string // those that are set
		dims   map[string]int
	}{
		{`{"size": 8}`, "", map[string]int{"size": 8, "labels": 2, "part": 4}},
		{`{"size": 8, "a": false}`, "there", nil},
		{`{"size": 8, "a": null, "b": {"c": 0}}`, "there", nil},
		{`{"size": 8, "b": {"c": null}}`, "", nil},
		{`{"size": 8, "embedding": 8.0}`, "", nil},
		{`{"size": 8, "embedding": 4}`, "apart", nil},
		{`{"size": 8, "embedding": 8, "width": 4}`, "apart", nil},
		{`{"size": 8, "embedding": "8", "width": "8"}`, "", nil},
		{`{"size": 8, "width": 4}`, "", nil},
		{`{"size": 8, "kind": 2}`, "two", nil},
		{`{"size": 8, "kind": [1, "2"]}`, "two", nil},
		{`{"size": 8, "kind": true}`, "two", nil},
		{`{"size": 8, "kind": 1}`, "", nil},
		{`{"size": 8, "id2label": {"0": "a", "1": "b", "2": "c"}}`, "", map[string]int{"size": 8, "labels": 3, "part": 4}},
		{`{"size": 8, "num_labels": 5, "id2label": {}}`, "", map[string]int{"size": 8, "labels": 5, "part": 4}},
		{`{"size": 10, "share": 0.25}`, "", map[string]int{"size": 10, "labels": 2, "part": 2}},
		{`{"size": 10, "share": 1}`, "", map[string]int{"size": 10, "labels": 2, "part": 10}},
		{`{"size": 80, "share": 0.4}`, "", map[string]int{"size": 80, "labels": 2, "part": 32}},
		{`{"size": 10, "share": 0}`, "", map[string]int{"size": 10, "labels": 2, "part": 0}},
		{`{"size": 3, "text_config": {"size": 8}}`, "", map[string]int{"size": 8, "labels": 2, "part": 4}},
		{`{"size": 8, "text_config": {"size": null, "num_labels": 7}}`, "", map[string]int{"size": 8, "labels": 7, "part": 4}},
		{`{"num_labels": 6, "text_config": {"size": 8, "id2label": {"0": "x"}}}`, "", map[string]int{"size": 8, "labels": 1, "part": 4}},
		{`{"a": 1, "text_config": {"size": 8, "b": {"c": null}, "kind": 1}, "kind": 2}`, "there", nil},
		{`{"size": 8, "text_config": null}`, "", nil},
	} {
		m, err := f.read([]byte(c.config))
		if err != nil {
			t.Errorf("%s: %v", c.config, err)
			continue
		}
		var set []string
		for _, flag := range f.flags {
			if m.flags[flag.Name] {
				set = append(set, flag.Name)
			}
		}
		dims := map[string]int{}
		for name, d := range m.dims {
			dims[name] = d.value
		}
		if strings.Join(set, " ") != c.flags || c.dims != nil && !reflect.DeepEqual(dims, c.dims) {
			t.Errorf("%s: %v, %v", c.config, set, dims)
		}
	}
}

func TestReadFieldErrors(t *testing.T) {
	f := mustParse(t, reading)
	for config, want := range map[string]string{
		`{"size": 8, "share": 1.5}`:              `config.json: share is 1.5, not a number from 0 to 1`,
		`{"size": 8, "share": "half"}`:           `config.json: share is "half", not a number from 0 to 1`,
		`{"share": 1.5}`:                         "config.json: size is missing\nconfig.json: share is 1.5, not a number from 0 to 1",
		`{"size": 8, "id2label": {}}`:            `config.json: id2label is 0, outside 1 to 2147483648`,
		`{"size": 8, "id2label": ["a"]}`:         `config.json: id2label is ["a"], not a whole number`,
		`{"size": 8, "kind": [[2]]}`:             `config.json: kind is [2], not a string, a number or true or false`,
		`{"size": 8, "text_config": "a string"}`: `config.json: text_config is "a string", not an object`,
		`{"text_config": {"size": "8"}}`:         `config.json: size is "8", not a whole number`,
	} {
		if _, err := f.read([]byte(config)); err == nil || err.Error() != want {
			t.Errorf("%s: got\n%v\nwant\n%s", config, err, want)
		}
	}
	least := mustParse(t, strings.Replace(reading, `"min": 0, `, ``, 1))
	if _, err := least.read([]byte(`{"size": 3, "share": 0.25}`)); err == nil || err.Error() != "config.json: part (share of size 3) is 0, less than 1" {
		t.Error(err)
	}
}

func TestDetectText(t *testing.T) {
	for config, family := range map[string]string{
		`{"model_type": "llava", "text_config": {"model_type": "llama"}}`:                                                 "llama",
		`{"model_type": "gpt2", "text_config": {"model_type": "llama"}}`:                                                  "gpt2",
		`{"model_type": "x", "architectures": ["GPT2LMHeadModel"], "text_config": {"model_type": "llama"}}`:               "llama",
		`{"model_type": "x", "architectures": ["Y"], "text_config": {"model_type": "z", "architectures": ["GPT2Model"]}}`: "gpt2",
	} {
		if f, err := Detect([]byte(config)); err != nil || f.Name != family {
			t.Errorf("%s: %v, %v", config, f, err)
		}
	}
	_, err := Detect([]byte(`{"model_type": "x", "architectures": ["Y"], "text_config": {"model_type": "z"}}`))
	if err == nil || !strings.Contains(err.Error(), "x, z, Y: architecture not in the catalogue") {
		t.Error(err)
	}
}
