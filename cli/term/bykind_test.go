package term

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestByKind(t *testing.T) {
	var b ByKind
	b.Add("too coarse", "layers.0.mlp")
	b.Add("lost", "layers.1.mlp")
	b.Add("too coarse", "layers.1.mlp")
	b.Add("too coarse", "head")
	have := b.Lines(func(tensor string) string { return tensor[strings.LastIndex(tensor, ".")+1:] })
	want := []string{"too coarse: 2 × mlp, 1 × head", "layers.1.mlp: lost"}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Error(diff)
	}
}
