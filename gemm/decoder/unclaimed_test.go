package decoder_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// add adds an F32 scalar to a model.
func add(t *testing.T, dir, name string) {
	t.Helper()
	testmodel.Alter(t, dir, func(infos []weights.Info, data map[string][]byte) []weights.Info {
		data[name] = make([]byte, 4)
		return append(infos, weights.Info{Name: name, DType: weights.F32})
	})
}

func TestUnknownTensorIsAnError(t *testing.T) {
	dir := synthetic(t, "llama-tiny", fields{"tie_word_embeddings": true})
	add(t, dir, "model.layers.0.mlp.up_proj.lowtoggle_shift")
	_, err := describeFolder(t, dir)
	testmodel.WantError(t, err, `"model.layers.0.mlp.up_proj.lowtoggle_shift" is not part of family llama, so its effect is unknown and the model cannot be run (unknown tensors: 1)`)
}

// TestStoredShiftsAreKnown: stored shifts of a claimed weight are no unclaimed tensors.
func TestStoredShiftsAreKnown(t *testing.T) {
	dir := synthetic(t, "llama-tiny", nil)
	add(t, dir, "model.layers.0.mlp.up_proj.weight"+weights.ShiftSuffix)
	if _, err := describeFolder(t, dir); err != nil {
		t.Error(err)
	}
}

// TestTensorsBesideTheModel: layers for multi-token prediction and vision encoders have no effect on text.
func TestTensorsBesideTheModel(t *testing.T) {
	dir := synthetic(t, "deepseek_v3-tiny", nil)
	add(t, dir, "model.layers.3.eh_proj.weight")
	if _, err := describeFolder(t, dir); err != nil {
		t.Errorf("with a layer behind the last: %v", err)
	}

	dir = synthetic(t, "llama-tiny", nil)
	testmodel.Alter(t, dir, func(infos []weights.Info, data map[string][]byte) []weights.Info {
		for i, info := range infos {
			infos[i].Name = "language_model." + info.Name
			data[infos[i].Name] = data[info.Name]
		}
		return infos
	})
	config := slices.Concat([]byte(`{"model_type": "llava", "text_config": `), testmodel.Config(t, "llama-tiny", ""), []byte("}"))
	testmodel.OK(t, os.WriteFile(filepath.Join(dir, "config.json"), config, 0o666))
	add(t, dir, "vision_tower.patches.weight")
	if _, err := describeFolder(t, dir); err != nil {
		t.Errorf("beside a vision tower: %v", err)
	}
	add(t, dir, "language_model.model.layers.0.stray.weight")
	_, err := describeFolder(t, dir)
	testmodel.WantError(t, err, "stray")
}
