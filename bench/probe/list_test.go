package probe_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/bench/probe"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// TestList: a filled list is a table with random weights in every group, and with enough patterns of every type.
func TestList(t *testing.T) {
	for _, full := range []bool{false, true} {
		var b bytes.Buffer
		if err := probe.WriteList(&b, full); err != nil {
			t.Fatal(err)
		}
		if _, err := probe.ReadTable("list.csv", strings.NewReader(b.String())); err == nil || !strings.HasPrefix(err.Error(), "list.csv:2: column joules") {
			t.Errorf("a list without measurements: %v", err)
		}
		rows, err := probe.ReadTable("list.csv", strings.NewReader(strings.ReplaceAll(b.String(), ",,", ",1,0.002")))
		if err != nil {
			t.Fatal(err)
		}
		type kind struct {
			typ  arith.Type
			cold bool
		}
		besides, first := map[kind]int{}, map[cost.Product]bool{}
		for _, r := range rows {
			if !first[r.Product] {
				if first[r.Product] = true; strings.Contains(r.Weights.String(), "|") || !strings.HasPrefix(r.Weights.String(), "normal(") {
					t.Errorf("%+v starts with %s", r.Product, r.Weights)
				}
				continue
			}
			besides[kind{r.Product.Type, r.Product.Cold}]++
		}
		t.Logf("full %v: %d rows", full, len(rows))
		for k, n := range besides {
			if t.Logf("%v, cold %v: %d patterns", k.typ, k.cold, n); n < probe.Fewest {
				t.Errorf("%v, cold %v: %d patterns, and a fit needs %d", k.typ, k.cold, n, probe.Fewest)
			}
		}
	}
}
