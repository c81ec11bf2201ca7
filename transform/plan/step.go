package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Step is one decision of one pass. An exact pass acts on the index Index, and all other passes act on the tensor
// Tensor. Exactly one of the two is set.
type Step struct {
	Pass   string
	Index  string
	Tensor string
	// Data is a value of the pass's own type, or its JSON in a plan that was read. Only the pass and its check in
	// package verify decode the data, with [Data].
	Data any
	// Field is the name of the JSON field of Data; empty if Data was not read.
	Field string
}

// Data returns the data of a step as a T. former are the field's other names in plans of version 1. Unknown fields,
// data of another type and missing data are errors.
func Data[T any](s *Step, former ...string) (v T, err error) {
	if s == nil {
		return v, errors.New("the step is nil and has no data")
	}
	if s.Field != "" && s.Field != s.Pass && !slices.Contains(former, s.Field) {
		return v, fmt.Errorf("pass %q has no field %q", s.Pass, s.Field)
	}
	switch d := s.Data.(type) {
	case T:
		return d, nil
	case json.RawMessage:
		dec := json.NewDecoder(bytes.NewReader(d))
		dec.DisallowUnknownFields()
		return v, dec.Decode(&v)
	case nil:
		return v, errors.New("has no data")
	}
	return v, fmt.Errorf("has data of type %T, not %T", s.Data, v)
}

// MarshalJSON writes the data under the name of the pass.
func (s *Step) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	field := func(name string, value any) error {
		key, err := json.Marshal(name)
		if err != nil {
			return err
		}
		js, err := json.Marshal(value)
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s:%s", key, js)
		return err
	}
	err := field("pass", s.Pass)
	if s.Index != "" {
		err = errors.Join(err, field("index", s.Index))
	}
	if s.Tensor != "" {
		err = errors.Join(err, field("tensor", s.Tensor))
	}
	if s.Data != nil {
		err = errors.Join(err, field(s.Pass, s.Data))
	}
	b.WriteByte('}')
	return b.Bytes(), err
}

// UnmarshalJSON reads a step of version 1 or 2. Besides pass, index and tensor, a step has at most one field: its
// data, under any name. [Data] returns an error for a name that the pass does not know. More fields are an error.
func (s *Step) UnmarshalJSON(js []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(js, &fields); err != nil {
		return err
	}
	*s = Step{}
	if fields["pass"] == nil {
		return errors.New("a step names no pass")
	}
	if err := json.Unmarshal(fields["pass"], &s.Pass); err != nil {
		return fmt.Errorf("a step names no pass: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := fields[name]
		var err error
		switch {
		case name == "pass":
		case name == "index":
			err = json.Unmarshal(value, &s.Index)
		case name == "tensor":
			err = json.Unmarshal(value, &s.Tensor)
		case s.Data == nil:
			s.Data, s.Field = value, name
		default:
			err = fmt.Errorf("a step of pass %q has two fields of data, %q and %q", s.Pass, s.Field, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// check returns an error for a step that names no pass, and for a step that acts on neither an index nor a tensor, or
// on both.
func (s *Step) check() error {
	switch {
	case s == nil:
		return errors.New("is null")
	case s.Pass == "":
		return errors.New("names no pass")
	case (s.Index == "") == (s.Tensor == ""):
		return fmt.Errorf("%s: must name either an index or a tensor, and not both", s.Pass)
	}
	return nil
}

// ByTensor groups tensor steps by tensor, in the plan's order.
func ByTensor(steps []*Step) map[string][]*Step {
	m := map[string][]*Step{}
	for _, s := range steps {
		if s.Tensor != "" {
			m[s.Tensor] = append(m[s.Tensor], s)
		}
	}
	return m
}
