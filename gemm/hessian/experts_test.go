package hessian_test

import (
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/hessian"
)

// Two tokens are routed to two of five experts each, so at least one expert in every block gets no token.
func TestExpertsThatNoTokenGetsTo(t *testing.T) {
	s, dir := tiny(t, "mixtral-tiny"), t.TempDir()
	s.tokens = [][]int32{{3, 5}}
	store := s.collect(t, dir, hessian.Options{Key: "a"})
	seen := s.observe(t).x
	absent := 0
	for _, l := range s.decoder.Layers() {
		has := store.Has(l.Tensor)
		if !has {
			absent++
		}
		if !has && !l.Routed {
			t.Errorf("the store lacks %s", l.Tensor)
		}
		if x := seen[l.Tensor]; x != nil && !has {
			t.Errorf("the store lacks %s, which has seen %d tokens", l.Tensor, len(x))
		}
	}
	if absent < 2*3 { // gate, up and down
		t.Errorf("%d layers of experts have no inputs", absent)
	}
	again, err := s.again(dir, "a")
	if err != nil {
		t.Fatal(err)
	}
	same(t, store, again)
}
