package runner

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
)

// TestColumns: the first columns that kernels compute are those of the description.
func TestColumns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 9)
		kv, group := size.Draw(t, "kv"), size.Draw(t, "group")
		h := decoder.Heads{Queries: kv * group, KV: kv, Size: size.Draw(t, "size"), ValueSize: size.Draw(t, "value size"), ByHead: rapid.Bool().Draw(t, "by head")}
		c := columnsOf(h)
		for head := range h.Queries {
			if got := head/group*c.queryStep + head%group*h.Size; got != h.Query(head) {
				t.Errorf("%+v: query %d is at %d, want %d", h, head, got, h.Query(head))
			}
		}
		for head := range h.KV {
			if got := c.keyBase + head*c.keyStep; got != h.Key(head) {
				t.Errorf("%+v: key %d is at %d, want %d", h, head, got, h.Key(head))
			}
			if got := c.valueBase + head*c.valueStep; got != h.Value(head) {
				t.Errorf("%+v: value %d is at %d, want %d", h, head, got, h.Value(head))
			}
		}
	})
}
