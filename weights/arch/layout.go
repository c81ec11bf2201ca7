package arch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Layout describes every tensor of a checkpoint. It is read-only and may be used from several goroutines. A nil Layout means a
// model of an unknown family: only IsLinear, Kind and OutAxis may be called then.
type Layout struct {
	Family string
	// Dims are the family's dims with this model's values.
	Dims map[string]int
	// Claims has an entry for every tensor that the family knows, by the tensor's name.
	Claims map[string]*Claim
	// Unclaimed names all other tensors, sorted. Conversions must copy them unchanged.
	Unclaimed []string
	// Indices are all indices of the claims, in the order of the family file, and each kind layer by layer.
	Indices []*Index
	// Adapter says how an adapter in the base's folder fits the base; nil if there is none (see Adapt).
	Adapter *Adapter
	// Quantised says which weights are stored as codes. Their tensors are neither in Claims nor in Unclaimed,
	// unless a tensor of codes has the weight's own name.
	Quantised *quant.Description

	byName map[string]*Index
	kept   map[string]string // tensors that stay as they are, with the reason; see Keep
}

// Index returns the index of a name; nil if there is none.
func (l *Layout) Index(name string) *Index { return l.byName[name] }

// Index is a set of labels 0 to Len-1 that axes of several tensors share: the channels of the residual stream, the neurons of
// one layer's FFN, the channels of one head. Labels are those of the source model: "layers.3.kv.1.v" means the value channels
// of the source's KV head 1, also after heads are permuted.
type Index struct {
	Name string // "residual", "layers.3.ffn", "layers.3.kv.1.v"
	Kind string // the family file's name for it: "v"
	Len  int
	// Permute, Sign and Scale say which operations keep the model's function, if applied to all uses at once: a permutation
	// of the labels; -1 on any label; 2^k on any label.
	Permute, Sign, Scale bool
	// Cached is true if a runtime's KV cache may store activations that the index's scales multiply, such as keys and values.
	Cached bool
	// Blocked is the reason why this checkpoint allows no permutation, sign or scale of the index; empty if it allows them.
	Blocked string
	// Uses are the axes that carry the index: by tensor in the order of the family file, each axis once.
	Uses []Use

	global bool // the whole model has one instance
}

// Use is an axis that carries an index.
type Use struct {
	Tensor string
	Axis   int // a dimension of the tensor
	// Signed is true if signs and scales of the index apply to the axis or a part of it. Permutations always apply.
	Signed bool
}

// Claim is the role of one tensor in the architecture, with its axes.
type Claim struct {
	Name  string
	Kind  string // the type of layer, for tables: "mlp.up_proj", "mlp.up_proj.bias", "embed_tokens"
	Layer int    // value of the first variable in the name; -1 if the name has none
	Role  Role
	// OutAxis is the dimension that counts a linear layer's outputs: 0, or 1 for a weight that is stored [in, out]. 0 for every
	// other role.
	OutAxis int
	// Axes has one entry per dimension.
	Axes []*Axis
	// NormKind is the arithmetic of the norm whose weight this is; empty for all other tensors, and
	// for norms that the family does not list.
	NormKind NormKind
	// Norm is the norm whose output is this linear layer's input; nil if there is none.
	Norm *NormRef
	// Bias is the name of this linear layer's bias; empty if the checkpoint has none.
	Bias string
	// Quantised is the format of a weight that is stored as codes; empty for every other weight. Name is then the weight's, and
	// there may be no tensor of this name.
	Quantised string
	// Softmax is true if the outputs go directly into a softmax and no other layer uses the tensor. One vector may then be
	// added to every row.
	Softmax bool
}

// NormRef names the tensors of a norm.
type NormRef struct {
	Kind   NormKind
	Weight string
	Bias   string // empty if the checkpoint has none
}

// NormKind is the arithmetic of a norm.
type NormKind string

const (
	LayerNorm NormKind = "layernorm" // weight·(x - mean)/std + bias
	RMSNorm   NormKind = "rmsnorm"   // weight·x/rms
	RMSNorm1p NormKind = "rmsnorm1p" // (1 + weight)·x/rms
)

// Role is the purpose of a tensor. The zero value is no role.
type Role uint8

const (
	_         Role = iota
	Linear         // the weight of a linear layer
	Embedding      // rows that are looked up
	Norm           // weight or bias of a norm
	Bias           // bias of a linear layer
	Buffer         // no parameter: copied unchanged
)

var roles = []string{Linear: "linear", Embedding: "embedding", Norm: "norm", Bias: "bias", Buffer: "buffer"}

// String returns the name that family files use.
func (r Role) String() string {
	if r == 0 || int(r) >= len(roles) {
		return fmt.Sprintf("Role(%d)", uint8(r))
	}
	return roles[r]
}

// MarshalText writes the name that family files use.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the output of MarshalText.
func (r *Role) UnmarshalText(b []byte) error {
	i := slices.Index(roles, string(b))
	if i <= 0 {
		return fmt.Errorf("role is %q, not one of %q", b, roles[1:])
	}
	*r = Role(i)
	return nil
}

// IsLinear reports whether a tensor is the weight of a linear layer. A quantised weight does not count, because
// its tensors do not hold its values. With a nil layout every matrix of numbers counts, unless its name suggests an embedding;
// callers leave out the tensors that [quant.Description] holds.
func (l *Layout) IsLinear(t weights.Info) bool {
	if l != nil {
		c := l.Claims[t.Name]
		return c != nil && c.Role == Linear && c.Quantised == ""
	}
	if _, numbers := t.DType.Format(); !numbers || len(t.Shape) < 2 {
		return false
	}
	name := strings.ToLower(t.Name)
	for _, word := range []string{"embed", "wte", "wpe", "rotary", "position"} {
		if strings.Contains(name, word) {
			return false
		}
	}
	return true
}

// Kind returns the type of layer that a tensor belongs to, such as "mlp.up_proj", in the family's words. If the layout is nil or
// does not know the tensor, Kind returns the tensor's name with "N" in place of numbers and without ".weight".
func (l *Layout) Kind(tensor string) string {
	if l != nil && l.Claims[tensor] != nil {
		return l.Claims[tensor].Kind
	}
	words := strings.Split(strings.TrimSuffix(tensor, ".weight"), ".")
	for i, w := range words {
		if strings.Trim(w, "0123456789") == "" {
			words[i] = "N"
		}
	}
	return strings.Join(words, ".")
}

// OutAxis returns the stored dimension that counts a layer's outputs: 1 for a linear layer that is stored [in, out], and
// otherwise 0. A nil layout returns 0 for every tensor.
func (l *Layout) OutAxis(tensor string) int {
	if l == nil || l.Claims[tensor] == nil {
		return 0
	}
	return l.Claims[tensor].OutAxis
}
