package arch

import (
	"bytes"
	"encoding/json"
)

// The specs mirror a family file's JSON; doc.go explains every field.

type spec struct {
	Family        string       `json:"family,omitempty"`
	Like          string       `json:"like,omitempty"`
	Doc           string       `json:"doc,omitempty"`
	ModelTypes    []string     `json:"model_types,omitempty"`
	Architectures []string     `json:"architectures,omitempty"`
	Prefixes      []prefix     `json:"prefixes,omitempty"`
	Flags         []flagSpec   `json:"flags,omitempty"`
	Dims          []dimSpec    `json:"dims,omitempty"`
	Loops         []loopSpec   `json:"loops,omitempty"`
	Indices       []indexSpec  `json:"indices,omitempty"`
	Norms         []normSpec   `json:"norms,omitempty"`
	Tensors       []tensorSpec `json:"tensors,omitempty"`
	Absent        []Absence    `json:"absent,omitempty"`
}

// entry has the fields that the entries of all lists share.
type entry struct {
	Name   string `json:"name,omitempty"`
	Doc    string `json:"doc,omitempty"`
	After  string `json:"after,omitempty"`
	Remove bool   `json:"remove,omitempty"`
}

func (e *entry) common() *entry { return e }

type flagSpec struct {
	entry
	Fields  []string `json:"fields,omitempty"`
	Is      []string `json:"is,omitempty"`
	Present bool     `json:"present,omitempty"`
	Unlike  []string `json:"unlike,omitempty"`
	Default bool     `json:"default,omitempty"`
}

type dimSpec struct {
	entry
	Fields []string `json:"fields,omitempty"`
	Of     string   `json:"of,omitempty"`
	Value  string   `json:"value,omitempty"`
	Min    *int     `json:"min,omitempty"`
	When   string   `json:"when,omitempty"`
}

type loopSpec struct {
	entry
	Count  string `json:"count,omitempty"`
	Beyond bool   `json:"beyond,omitempty"`
}

type indexSpec struct {
	entry
	Per     []string `json:"per,omitempty"`
	Length  string   `json:"length,omitempty"`
	Uses    string   `json:"uses,omitempty"`
	Permute string   `json:"permute,omitempty"`
	Sign    string   `json:"sign,omitempty"`
	Scale   string   `json:"scale,omitempty"`
}

type normSpec struct {
	entry
	Kind   string `json:"kind,omitempty"`
	Weight string `json:"weight,omitempty"`
	Bias   string `json:"bias,omitempty"`
}

type tensorSpec struct {
	entry
	Role     string   `json:"role,omitempty"`
	Axes     []string `json:"axes,omitempty"`
	Out      int      `json:"out,omitempty"`
	Norm     string   `json:"norm,omitempty"`
	Bias     string   `json:"bias,omitempty"`
	Softmax  bool     `json:"softmax,omitempty"`
	Optional bool     `json:"optional,omitempty"`
	When     string   `json:"when,omitempty"`
	From     string   `json:"from,omitempty"`
	To       string   `json:"to,omitempty"`
}

// prefix maps the words {prefix} and {root}, and the family's own words, to their text in tensors' names.
type prefix map[string]string

// UnmarshalJSON reads an object, or a string that stands for {prefix} alone.
func (p *prefix) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte("{")) {
		return json.Unmarshal(data, (*map[string]string)(p))
	}
	var s string
	err := json.Unmarshal(data, &s)
	*p = prefix{"prefix": s}
	return err
}

// own reports whether a word is one of the family's own.
func (p prefix) own(word string) bool {
	_, ok := p[word]
	return ok && word != "prefix" && word != "root"
}
