package arch

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
)

// Family is one architecture: the tensors of its checkpoints and the indices on their axes. Parse makes a Family. It is read-only
// and may be used from several goroutines.
type Family struct {
	Name          string
	Doc           string
	ModelTypes    []string // values of "model_type" in config.json that mean this family
	Architectures []string // values of "architectures" that mean this family
	// Digest is the SHA-256 of the file that was parsed, in hexadecimal; empty for a family of the catalogue.
	Digest string
	// Absent lists usual symmetries that the family does not have, with the reasons.
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

// The definitions below are the specs of a family file with parsed expressions and resolved names. A slot is the number of a
// loop or an index: loops come first, then indices.

type dimDef struct {
	dimSpec
	when  condition
	of    *arith // the field is a fraction of this; nil: the field is the number itself
	value *arith // default; nil: a missing field is an error
}

type loopDef struct {
	name   string
	count  *arith
	beyond bool // tensors beyond count are unclaimed, which is no error
}

type indexDef struct {
	indexSpec
	per                  []int // slots, outer first
	length               *arith
	uses                 *arith // nil: not given
	permute, sign, scale symmetry
}

// symmetry is the condition under which an index has a symmetry; nil means never.
type symmetry *condition

type normDef struct {
	kind         NormKind
	weight, bias pattern // bias.text is empty if the norm has no bias
}

type tensorDef struct {
	tensorSpec
	pattern  pattern
	role     Role
	when     condition
	axes     [][]*node // the riders of each dimension
	from, to *arith    // nil: the whole loop
	bias     pattern   // its text is empty if the layer has no bias
	normKind NormKind  // for a norm's weight that "norms" lists
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

// condition is a conjunction of flags, some negated: "tied !headless". An empty condition is true.
type condition []literal

type literal struct {
	flag string
	not  bool
}

// parseCondition reads a condition and names the flags in it that are not in known.
func parseCondition(s string, known map[string]bool) (c condition, unknown []string) {
	for _, word := range strings.Fields(s) {
		flag, not := strings.CutPrefix(word, "!")
		if !known[flag] {
			unknown = append(unknown, flag)
		}
		c = append(c, literal{flag, not})
	}
	return c, unknown
}

func (c condition) holds(flags map[string]bool) bool {
	for _, l := range c {
		if flags[l.flag] == l.not {
			return false
		}
	}
	return true
}
