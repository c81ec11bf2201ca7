package arch

import (
	"embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
)

// Family is one architecture: which tensors its checkpoints have, and what each of their axes
// counts. It is made by Parse, is read-only, and may be used from several goroutines.
type Family struct {
	Name          string
	Doc           string
	ModelTypes    []string // the "model_type" of config.json that it answers to
	Architectures []string // the "architectures" that it answers to
	// Absent is what of the usual symmetries does not hold, and why.
	Absent []Absence

	prefixes []prefix
	flags    []flagSpec
	dims     []dimDef
	loops    []loopDef
	indices  []indexDef // the index at i has slot len(loops)+i
	norms    map[string]normDef
	tensors  []*tensorDef
}

// Absence is a symmetry that a family does not have.
type Absence struct {
	What string `json:"what"` // "residual signs"
	Why  string `json:"why"`  // a sentence
}

// The definitions below are the specs of a family file with expressions parsed and names
// resolved. A slot numbers what can be counted: first the loops, then the indices.

type dimDef struct {
	dimSpec
	when  condition
	of    *arith // what the field is a fraction of; nil where it is the number itself
	value *arith // nil where only a field gives it
}

type loopDef struct {
	name   string
	count  *arith
	beyond bool // what lies beyond count is no error, and not claimed
}

type indexDef struct {
	indexSpec
	per                  []int // slots, outer first
	length               *arith
	uses                 *arith // nil where the file does not say
	permute, sign, scale symmetry
}

// symmetry is the condition under which an index has it; nil is never.
type symmetry *condition

type normDef struct {
	kind         NormKind
	weight, bias pattern // bias.text is empty where there is none
}

type tensorDef struct {
	tensorSpec
	pattern  pattern
	role     Role
	when     condition
	axes     [][]*node // per dimension its riders
	from, to *arith    // nil: the whole loop
	bias     pattern   // its text is empty where there is none
	normKind NormKind  // of a norm's weight, where "norms" lists it
}

//go:embed families/*.json
var files embed.FS

var embedded = sync.OnceValue(func() []*Family {
	entries, err := files.ReadDir("families")
	if err != nil {
		panic(err)
	}
	var all []*Family
	for _, e := range entries {
		data, err := files.ReadFile(path.Join("families", e.Name()))
		if err != nil {
			panic(err)
		}
		f, err := Parse(data)
		if err != nil {
			panic(fmt.Sprintf("%s: %v", e.Name(), err)) // a test parses every one of them
		}
		all = append(all, f)
	}
	return all
})

// Families returns the embedded families, in the order of their files' names.
func Families() []*Family { return slices.Clone(embedded()) }

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
