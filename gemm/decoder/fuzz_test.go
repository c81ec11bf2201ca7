package decoder_test

import (
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// FuzzNew: with any config.json, the tensors of a small model are described or refused.
func FuzzNew(f *testing.F) {
	type model struct {
		*weights.Model
		layout *arch.Layout
	}
	var models []model
	for i, name := range []string{"llama-tiny", "gemma3-tiny", "deepseek_v3-tiny", "gpt2-tiny"} {
		config := testmodel.Config(f, name, `{}`)
		m, err := weights.Open(testmodel.Folder(f, config, synth.Options{Seed: 1}))
		testmodel.OK(f, err)
		f.Cleanup(func() { m.Close() })
		models = append(models, model{m, testmodel.LayoutOf(f, m)})
		f.Add(config, byte(i))
	}
	f.Add([]byte(`{"model_type": "llama", "rope_scaling": {"rope_type": "yarn"}, "text_config": {"sliding_window": -1}}`), byte(0))
	f.Fuzz(func(t *testing.T, config []byte, which byte) {
		m := models[int(which)%len(models)]
		changed := &weights.Model{Dir: m.Dir, Config: config, Shards: m.Shards}
		d, err := decoder.New(changed, m.layout)
		if (d == nil) == (err == nil) {
			t.Errorf("%v, %v", d, err)
		}
	})
}
