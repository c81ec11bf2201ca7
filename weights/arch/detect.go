package arch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrUnknownFamily is the error for a config.json that no family of the catalogue matches. Detect and Resolve wrap it.
var ErrUnknownFamily = errors.New("architecture not in the catalogue")

// ErrConfig is the error for a config.json that cannot be read: the file is not a JSON object, or fields that name the
// architecture have wrong types. Detect and Resolve wrap it.
var ErrConfig = errors.New("config.json cannot be read")

// Detect returns the embedded family of a config.json: by its model_type, else by the model_type of its text_config, else by its
// architectures. The error is [ErrConfig] for invalid JSON and values of wrong types, and [ErrUnknownFamily] if no family
// matches.
func Detect(configJSON []byte) (*Family, error) {
	c, err := readConfig(configJSON)
	if err != nil {
		return nil, marked{err, ErrConfig}
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
			return nil, marked{err, ErrConfig}
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
