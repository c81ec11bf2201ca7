package arch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// TestQuantisedClaims: in every layout quantised weights have the claims of unquantised ones. No tensor is unclaimed, and the
// indices of weights that cannot be read are blocked.
func TestQuantisedClaims(t *testing.T) {
	for _, q := range testmodel.Quantisations {
		plain := resolved(t, testmodel.Quantised(t, q, testmodel.With{Keep: []string{"layers"}, Config: "none"}))
		l := resolved(t, testmodel.Quantised(t, q, testmodel.With{}))
		if len(l.Unclaimed) > 0 || len(l.Claims) != len(plain.Claims) || len(l.Indices) != len(plain.Indices) {
			t.Errorf("%s: unclaimed %q, %d claims and %d indices, want %d and %d", q.Name, l.Unclaimed, len(l.Claims), len(l.Indices), len(plain.Claims), len(plain.Indices))
			continue
		}
		for name, c := range l.Claims {
			quantised := strings.HasSuffix(name, "_proj.weight")
			if (c.Quantised == q.Format) != quantised || c.Kind != plain.Claims[name].Kind || c.Role != plain.Claims[name].Role {
				t.Errorf("%s: %s is %s, quantised as %q", q.Name, name, c.Kind, c.Quantised)
			}
			if info := (weights.Info{Name: name}); l.IsLinear(info) != (plain.IsLinear(info) && !quantised) {
				t.Errorf("%s: %s counts as a linear layer: %v", q.Name, name, l.IsLinear(info))
			}
		}
		for i, x := range l.Indices {
			shared := slices.ContainsFunc(x.Uses, func(u arch.Use) bool { return l.Claims[u.Tensor].Quantised != "" })
			if fixed := shared && l.Quantised.Weights[0].CanRead() != nil; fixed != (x.Blocked != "") || !slices.Equal(x.Uses, plain.Indices[i].Uses) {
				t.Errorf("%s: index %s has quantised weights: %v, blocked: %q", q.Name, x.Name, shared, x.Blocked)
			}
		}
		if doubt := l.Doubt("model.layers.0.mlp.up_proj.weight"); !strings.Contains(doubt, q.Format) {
			t.Errorf("%s: doubt %q", q.Name, doubt)
		}
	}
}

// TestQuantisedShapes: the values of a quantised weight have the shape that config.json asks for.
func TestQuantisedShapes(t *testing.T) {
	for _, q := range testmodel.Quantisations {
		if strings.HasPrefix(q.Name, "unknown") || q.Name == "bitsandbytes nf4" {
			continue // the shape of the values is not known
		}
		dir := testmodel.Quantised(t, q, testmodel.With{Fields: `{"intermediate_size": 512}`})
		_, err := arch.Resolve(testmodel.Open(t, dir), nil)
		codes := "model.layers.0.mlp.down_proj." + q.Tensors(128, 256)[0].Name
		testmodel.WantError(t, err, `tensor "`+codes+`": holds a weight of shape [128 256], but config.json says [128 512]`)
	}
}

// TestPackedRowsArePadded: rows of codes end on words of 32 bits.
func TestPackedRowsArePadded(t *testing.T) {
	q := testmodel.Quantisations[slices.IndexFunc(testmodel.Quantisations, func(q testmodel.Quantisation) bool { return q.Name == "pack-quantized" })]
	q.Config = strings.Replace(q.Config, `"strategy": "group", "group_size": 32`, `"strategy": "channel"`, 1)
	q.Tensors = func(n, k int) []weights.Info {
		return []weights.Info{{Name: "weight_packed", DType: weights.I32, Shape: []int{n, (k + 7) / 8}}, {Name: "weight_scale", DType: weights.BF16, Shape: []int{n, 1}}}
	}
	for size, fits := range map[int]bool{256: true, 249: true, 248: false, 257: false} {
		dir := testmodel.Quantised(t, q, testmodel.With{Keep: []string{"gate_proj", "up_proj"}, Fields: fmt.Sprintf(`{"intermediate_size": %d}`, size), Change: func(infos []weights.Info) []weights.Info {
			for i, x := range infos {
				if strings.HasSuffix(x.Name, "gate_proj.weight") || strings.HasSuffix(x.Name, "up_proj.weight") {
					infos[i].Shape = []int{size, 128}
				}
			}
			return infos
		}})
		if _, err := arch.Resolve(testmodel.Open(t, dir), nil); (err == nil) != fits {
			t.Errorf("%d inputs in 32 words: %v", size, err)
		}
	}
}

// TestUnknownTensorsOfAQuantisation: a weight that the family does not list blocks the indices that it may share.
func TestUnknownTensorsOfAQuantisation(t *testing.T) {
	const odd = "model.adapter.W_q"
	for _, q := range testmodel.Quantisations[len(testmodel.Quantisations)-2:] {
		l := resolved(t, testmodel.Quantised(t, q, testmodel.With{Keep: []string{"layers"}, Change: func(infos []weights.Info) []weights.Info {
			return append(infos, weights.Info{Name: odd, DType: weights.U8, Shape: []int{9, 9}})
		}}))
		if b := l.Index("residual").Blocked; !strings.Contains(b, `"model.adapter.weight" is quantised, and is not in the catalogue`) || l.Index("layers.0.ffn").Blocked != "" {
			t.Errorf("%s: residual is blocked by %q, the FFN by %q", q.Name, b, l.Index("layers.0.ffn").Blocked)
		}
	}
}

func resolved(t *testing.T, dir string) *arch.Layout {
	t.Helper()
	l, err := arch.Resolve(testmodel.Open(t, dir), nil)
	testmodel.OK(t, err)
	return l
}
