package arch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
)

// ErrUnknownFamily is wrapped by Detect's error where no family answers to a config.json.
var ErrUnknownFamily = errors.New("architecture not in the catalogue")

// Detect finds the embedded family that a config.json belongs to, by its model_type or, where no
// family has that, by the model_type of its text_config, or by its architectures. It fails on
// invalid JSON, on values of wrong types, and, with ErrUnknownFamily, where no family answers.
func Detect(configJSON []byte) (*Family, error) {
	c, err := readConfig(configJSON)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, by := range []struct {
		config config
		field  string
		of     func(*Family) []string
	}{
		{c.top(), "model_type", func(f *Family) []string { return f.ModelTypes }},
		{c, "model_type", func(f *Family) []string { return f.ModelTypes }},
		{c.top(), "architectures", func(f *Family) []string { return f.Architectures }},
		{c, "architectures", func(f *Family) []string { return f.Architectures }},
	} {
		has, err := by.config.strings(by.field)
		if err != nil {
			return nil, err
		}
		for _, f := range embedded() {
			if meet(has, by.of(f)) {
				return f, nil
			}
		}
		for _, name := range has {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	var known []string
	for _, f := range embedded() {
		known = append(known, f.Name)
	}
	if names == nil {
		return nil, fmt.Errorf("config.json: has neither model_type nor architectures: %w (known: %s)", ErrUnknownFamily, strings.Join(known, ", "))
	}
	return nil, fmt.Errorf("config.json: %s: %w (known: %s)", strings.Join(names, ", "), ErrUnknownFamily, strings.Join(known, ", "))
}

func meet(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// embedderName is the file of a folder that is loaded as an embedder (sentence-transformers), whatever
// head config.json names.
const embedderName = "modules.json"

// Resolve finds out what every tensor of a model is, those of an adapter beside it included. A nil
// family is the one that [Detect] finds. Where there is none, the error is [ErrUnknownFamily]; every
// other error means that the model and its family contradict each other (see [Family.Resolve]).
func Resolve(m *weights.Model, family *Family) (*Layout, error) {
	if family == nil {
		if m.Config == nil {
			return nil, unknownFamily{fmt.Errorf("%s has no config.json", m.Dir)}
		}
		var err error
		family, err = Detect(m.Config)
		if errors.Is(err, ErrUnknownFamily) {
			return nil, fmt.Errorf("%w; --arch FILE describes another", err)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Dir, err)
		}
	}
	l, err := family.Resolve(m.Config, m.Infos())
	if err != nil {
		return nil, fmt.Errorf("%s: does not fit the family %s: %w", m.Dir, family.Name, err)
	}
	if slices.Contains(m.Others, embedderName) {
		l.Keep(embedderName + " makes the model's hidden states its outputs")
	}
	if m.Adapter != nil {
		l = l.Adapt(m.AdapterConfig, m.Adapter.Tensors)
	}
	return l, nil
}

// ResolveIfKnown is [Resolve] for callers that can do without: where the family is not known, the
// layout is nil and there is no error. The methods [Layout.IsLinear], [Layout.Kind] and
// [Layout.OutAxis] of a nil layout go by a tensor's name and shape.
func ResolveIfKnown(m *weights.Model, family *Family) (*Layout, error) {
	l, err := Resolve(m, family)
	if errors.Is(err, ErrUnknownFamily) {
		err = nil
	}
	return l, err
}

// unknownFamily is an [ErrUnknownFamily] with a text of its own.
type unknownFamily struct{ error }

func (unknownFamily) Is(target error) bool { return target == ErrUnknownFamily }
