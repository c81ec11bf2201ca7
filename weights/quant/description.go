package quant

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Description describes a checkpoint's quantisation: the weights that are stored as codes, their formats, and the tensors of each
// weight. All methods may be called on a nil Description, which describes a checkpoint without quantised weights.
type Description struct {
	// Method is the quant_method of a config; empty if there is none.
	Method string
	// Unknown is the reason why the checkpoint's layout is not known; empty if it is known.
	Unknown string
	// Weights are the quantised weights, in the order in which their codes lie in the files.
	Weights []*Quantised
	// Others are tensors that belong to the quantisation and to no weight, such as the scales of a KV cache.
	Others []Stored

	tensors map[string]stored
	named   map[string]*Quantised
}

// Quantised is a weight that is stored as codes.
type Quantised struct {
	// Name is the weight's name in an unquantised checkpoint, such as "model.layers.0.mlp.up_proj.weight".
	Name   string
	Format Format
	// Shape is the shape of the values: outputs × inputs, after the dimension of experts if there is one. It is nil if names,
	// types and shapes of the tensors do not determine it.
	Shape []int
	// Padding is the number of inputs at the end of a row that may be padding, because packed rows fill whole words.
	Padding int
	// Tensors are all tensors of the weight, the codes first.
	Tensors []Stored
	// Make returns n rows of an expert's matrix from first on, for a weight whose tensors are not written yet. Make is nil for
	// all other weights. Several goroutines call Make, with whole blocks of rows.
	Make func(expert, first, n int) *Matrix

	layout  layout
	version string // version of GPTQ's layout; empty if no config gives it
}

// Scales returns the tensor of the scales; false if there is none.
func (q *Quantised) Scales() (Stored, bool) { return q.part(Scales) }

// Stored is a tensor of a quantised checkpoint.
type Stored struct {
	Part
	Role Role

	start int64 // byte in the file at which the tensor begins
}

// stored is a tensor's place in a Description. The weight is nil for a tensor of Others.
type stored struct {
	weight *Quantised
	Stored
}

// Role is the purpose of a tensor in a quantised checkpoint.
type Role string

// The roles of tensors in a quantised checkpoint.
const (
	Codes       Role = "codes"
	Scales      Role = "scales"
	GlobalScale Role = "global scale"
	ZeroPoints  Role = "zero points"
	GroupIndex  Role = "group index"
	Shape       Role = "shape"
	// ActivationScale is a scale of a layer's inputs or outputs, or of a KV cache.
	ActivationScale Role = "activation scale"
	// Values are the values of a weight that is stored unquantised although the config says that it is quantised.
	Values Role = "values"
	Other  Role = "other"
)

// Format is the quantisation format of a weight.
type Format struct {
	Method string // quant_method; empty if the tensors determine the format and several methods write it
	// Codes is the type of the codes: "fp8", "int4", "nvfp4" and so on; empty if unknown, and "activations" for tensors that
	// belong to no weight.
	Codes string
	// Per is the part of the weight that shares a scale: "tensor", "channel", "block" or "group"; empty if unknown.
	Per string
	// Block is the size of a block, rows × columns, or of a group, 1 × columns.
	Block [2]int
}

// String describes the format, such as "fp8, blocks of 128×128 (compressed-tensors)".
func (f Format) String() string {
	s := f.Codes
	if s == "" {
		s = "unknown format"
	}
	switch {
	case f.Per == "":
	case f.Per == "tensor", f.Per == "channel", f.Block == [2]int{}:
		s += ", per " + f.Per
	case f.Per == "block":
		s += fmt.Sprintf(", blocks of %d×%d", f.Block[0], f.Block[1])
	case f.Per == "group":
		s += fmt.Sprintf(", groups of %d", f.Block[1])
	}
	if f.Method != "" {
		s += " (" + f.Method + ")"
	}
	return s
}

// Any reports whether the checkpoint has quantised weights, or other tensors of a quantisation.
func (d *Description) Any() bool { return d != nil && len(d.tensors) > 0 }

// Holds reports whether a tensor belongs to the quantisation.
func (d *Description) Holds(tensor string) bool {
	_, ok := d.find(tensor)
	return ok
}

// Tensor returns a tensor's role and the format of its weight. ok is false for a tensor that does
// not belong to the quantisation.
func (d *Description) Tensor(name string) (f Format, r Role, ok bool) {
	s, ok := d.find(name)
	if !ok {
		return f, "", false
	}
	return d.format(s), s.Role, true
}

func (d *Description) find(tensor string) (s stored, ok bool) {
	if d != nil {
		s, ok = d.tensors[tensor]
	}
	return s, ok
}

// format returns the format of a tensor's weight.
func (d *Description) format(s stored) Format {
	if s.weight == nil {
		return Format{Method: d.Method, Codes: "activations"}
	}
	return s.weight.Format
}

// Weight returns the quantised weight of a name; false if there is none.
func (d *Description) Weight(name string) (*Quantised, bool) {
	if d == nil {
		return nil, false
	}
	w, ok := d.named[name]
	return w, ok
}

// Formats returns a phrase with the formats of all quantised weights, the most frequent first: "28 weights in int4, groups of 128
// (gptq)".
func (d *Description) Formats() string {
	if d == nil {
		return ""
	}
	counts := map[string]int{}
	for _, w := range d.Weights {
		counts[w.Format.String()]++
	}
	var names []string
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
	for i, name := range names {
		what := "weights"
		if counts[name] == 1 {
			what = "weight"
		}
		names[i] = fmt.Sprintf("%d %s in %s", counts[name], what, name)
	}
	return strings.Join(names, "; ")
}

// Copied are the tensors of one format and role, which every conversion copies byte for byte.
type Copied struct {
	Format  string `json:"format"`
	Role    Role   `json:"role"`
	Tensors int    `json:"tensors"`
	Bytes   int64  `json:"bytes"`
	// Names are the tensors' names, sorted, with "N" in place of numbers.
	Names []string `json:"names"`
}

// Copied returns all tensors of the quantisation, grouped by format and role.
func (d *Description) Copied() []Copied { return d.CopiedBut(nil, nil) }

// CopiedBut is Copied without the codes and scales of the weights in changed, and without the zero points and group indices
// of the weights in moved. The keys of changed and moved are weight names.
func (d *Description) CopiedBut(changed, moved map[string]bool) []Copied {
	if d == nil {
		return nil
	}
	type key struct {
		format string
		role   Role
	}
	groups := map[key]*Copied{}
	for _, s := range d.tensors {
		if w := s.weight; w != nil {
			if changed[w.Name] && (s.Role == Codes || s.Role == Scales) || moved[w.Name] && (s.Role == ZeroPoints || s.Role == GroupIndex) {
				continue
			}
		}
		k := key{d.format(s).String(), s.Role}
		g := groups[k]
		if g == nil {
			g = &Copied{Format: k.format, Role: k.role}
			groups[k] = g
		}
		g.Tensors++
		g.Bytes += s.Size()
		if name := weights.Outline(s.Name); !slices.Contains(g.Names, name) {
			g.Names = append(g.Names, name)
		}
	}
	var list []Copied
	for _, g := range groups {
		slices.Sort(g.Names)
		list = append(list, *g)
	}
	slices.SortFunc(list, func(a, b Copied) int {
		return cmp.Or(cmp.Compare(a.Format, b.Format), a.Role.rank()-b.Role.rank())
	})
	return list
}

// rank orders roles as the constants do.
func (r Role) rank() int {
	return slices.Index([]Role{Codes, Scales, GlobalScale, ZeroPoints, GroupIndex, Shape, ActivationScale, Values, Other}, r)
}

// add adds a tensor of the weight w. If w is nil, the tensor belongs to no weight.
func (d *Description) add(w *Quantised, s Stored) {
	d.tensors[s.Name] = stored{w, s}
	if w == nil {
		d.Others = append(d.Others, s)
	} else {
		w.Tensors = append(w.Tensors, s)
	}
}
