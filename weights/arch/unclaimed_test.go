package arch

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

func TestUnclaimedGroups(t *testing.T) {
	f := find(t, Families(), "llama")
	infos, _ := synthetic(t, f, llamaConfig)
	for _, name := range []string{
		"vision_tower.layers.0.fc.weight", "vision_tower.layers.1.fc.weight", "vision_tower.norm.weight", "projector.weight",
		"model.layers.0.mlp.up_proj.scale", "model.layers.1.mlp.up_proj.scale", "model.layers.0.mlp.gate_proj.scale",
		"model.image.0.weight", "model.image.1.weight",
	} {
		infos = append(infos, weights.Info{Name: name, Shape: []int{99}})
	}
	l, err := f.Resolve([]byte(llamaConfig), infos)
	if err != nil {
		t.Fatal(err)
	}
	want := "[model.image (2 tensors) model.layers.0.mlp.gate_proj.scale model.layers.N.mlp.up_proj.scale (2 tensors) projector.weight vision_tower (3 tensors)]"
	if got := fmt.Sprint(l.UnclaimedGroups()); got != want {
		t.Errorf("unclaimed groups are\n%s\nwant\n%s", got, want)
	}
}

func TestBlockedIndices(t *testing.T) {
	f := find(t, Families(), "llama")
	infos, clean := synthetic(t, f, llamaConfig)
	if list := clean.BlockedIndices(); list != nil {
		t.Errorf("blocked are %v", list)
	}
	infos = append(infos, weights.Info{Name: "model.layers.0.mlp.a.weight", Shape: []int{99}}, weights.Info{Name: "model.layers.1.mlp.a.weight", Shape: []int{99}},
		weights.Info{Name: "projector.weight", Shape: []int{6}})
	l, err := f.Resolve([]byte(llamaConfig), infos)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range l.BlockedIndices() {
		got = append(got, b.String())
	}
	want := []string{
		`indices residual, final_norm are not changed: tensor "projector.weight" is not in the catalogue and has a dimension of 6, the index's length`,
		`4 indices (layers.0.mlp_norm, …) are not changed: tensor "model.layers.0.mlp.a.weight" is not in the catalogue and belongs to the same block as "model.layers.0.mlp.gate_proj.weight"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("blocked are\n%q\nwant\n%q", got, want)
	}
}
