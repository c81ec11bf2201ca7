package pass_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform/order"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// TestGivenOrders: the orders of a file become steps as they are. A file with an order that does not fit is refused.
func TestGivenOrders(t *testing.T) {
	m := open(t, folder(t, config(t, "llama-tiny", testplan.Narrow), synth.Options{}))
	model := modelOf(t, m, "reorder")
	given := func(orders any) ([]string, [][]int, error) {
		path := filepath.Join(t.TempDir(), "orders.json")
		js, err := json.Marshal(orders)
		ok(t, err)
		ok(t, os.WriteFile(path, js, 0o666))
		steps, err := pass.Reorder.Plan(t.Context(), model, append([]string{"given"}, strings.Split(path, "/")...))
		var names []string
		var labels [][]int
		for _, s := range steps {
			names, labels = append(names, s.Index), append(labels, s.Data.([]int))
		}
		return names, labels, err
	}
	orders := map[string][]int{}
	var names []string
	for _, ix := range model.Layout.Indices {
		if ix.Permute && ix.Blocked == "" && ix.Len > 1 {
			list := order.Identity(ix.Len)
			slices.Reverse(list)
			orders[ix.Name], names = list, append(names, ix.Name)
		}
	}
	if len(names) < 3 {
		t.Fatalf("only %v can be permuted", names)
	}
	got, labels, err := given(orders)
	ok(t, err)
	if !slices.Equal(got, names) {
		t.Errorf("steps for %v, want %v", got, names)
	}
	for i, list := range labels {
		if !slices.Equal(list, orders[got[i]]) {
			t.Errorf("%s: order %v, want %v", got[i], list, orders[got[i]])
		}
	}
	one := names[0]
	for want, orders := range map[string]any{
		"not a permutation of the numbers": map[string][]int{one: orders[one][1:]},
		"not a permutation":                map[string][]int{one: append(slices.Clone(orders[one][1:]), orders[one][1])},
		`has no index "elsewhere"`:         map[string][]int{"elsewhere": {0}},
		"orders.json: is not a JSON object with a permutation for each index: json": []int{1},
	} {
		if steps, _, err := given(orders); err == nil || !strings.Contains(err.Error(), want) || steps != nil {
			t.Errorf("%v: steps %v, error %v, want %s", orders, steps, err, want)
		}
	}
	ix := model.Layout.Index(one)
	ix.Blocked = "a tensor is unknown"
	_, _, err = given(orders)
	wantError(t, err, one, "cannot change: a tensor is unknown")
	ix.Blocked, ix.Permute = "", false
	_, _, err = given(orders)
	wantError(t, err, one, "may not be permuted")
	_, err = pass.Reorder.Plan(t.Context(), model, []string{"given", "no", "such.json"})
	wantError(t, err, "no/such.json")
}

// TestSizeOfSketches: eight small sketches together, or one large one alone, take at most the largest tensor, or 64 MiB. The
// adapter's tensors do not count.
func TestSizeOfSketches(t *testing.T) {
	const limit = 64 << 20
	matrix := func(d weights.DType, axis, labels, across int) order.Use {
		u := order.Use{Format: formatOf(d), Rows: labels, Cols: across, Axis: axis}
		if axis == 1 {
			u.Rows, u.Cols = across, labels
		}
		for i := range labels / 2 { // each label has two positions
			u.Positions = append(u.Positions, []int{2 * i, 2*i + 1})
		}
		return u
	}
	holds := func(bytes int, adapter bool) *quant.Weight {
		x := weights.Tensor{Info: weights.Info{Name: "w", DType: weights.U8, Shape: []int{bytes}, End: int64(bytes)}}
		w := testplan.Weight(x)
		w.Adapter = adapter
		return w
	}
	for _, c := range []struct {
		all   []*quant.Weight
		uses  []order.Use
		bytes int
		large bool
	}{
		{nil, []order.Use{matrix(weights.BF16, 0, 1024, 4096)}, limit / 8, false},
		{nil, []order.Use{matrix(weights.BF16, 1, 1024, 4096)}, limit / 8, false},
		{nil, []order.Use{matrix(weights.BF16, 0, 1024, 4097)}, limit, true},
		{nil, []order.Use{matrix(weights.F32, 1, 1024, 4096)}, limit, true},
		{nil, []order.Use{matrix(weights.I8, 0, 1024, 8192)}, limit / 8, false},
		{nil, []order.Use{matrix(weights.BF16, 0, 1024, 2048), matrix(weights.BF16, 1, 1024, 2048)}, limit / 8, false},
		{nil, []order.Use{matrix(weights.BF16, 0, 1024, 2048), matrix(weights.BF16, 1, 1024, 2049)}, limit, true},
		{[]*quant.Weight{holds(100, false), holds(limit+800, false)}, []order.Use{matrix(weights.BF16, 0, 1024, 4096)}, limit/8 + 100, false},
		{[]*quant.Weight{holds(limit+800, true)}, []order.Use{matrix(weights.BF16, 0, 1024, 4096)}, limit / 8, false},
	} {
		model := &pass.Model{Weights: &quant.Set{All: c.all}}
		if bytes, large := pass.SketchBytes(model, c.uses...); bytes != c.bytes || large != c.large {
			t.Errorf("%d weights, %d matrices of %d×%d: %d bytes, large: %v; want %d, %v", len(c.all), len(c.uses), c.uses[0].Rows, c.uses[0].Cols, bytes, large, c.bytes, c.large)
		}
	}
}
