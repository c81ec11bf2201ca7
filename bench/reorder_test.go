package bench

import (
	"context"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
)

// bigLayer is one layer with matrices of 14336×4096.
const bigLayer = `{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "dtype": "bfloat16",
	"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 1, "num_attention_heads": 32,
	"num_key_value_heads": 8, "vocab_size": 256, "tie_word_embeddings": false}`

// BenchmarkReorder plans the order of every index of a layer: the 14336 rows of gate and up
// (4096 columns each) together, the residual stream's 4096 channels, heads and head channels.
func BenchmarkReorder(b *testing.B) {
	m, err := weights.Open(synthesise(b, b.TempDir(), bigLayer))
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	passes, err := transform.ParsePasses("reorder")
	if err != nil {
		b.Fatal(err)
	}
	calibration, err := cost.FindCalibration("h200")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		o := transform.Options{Passes: passes, Workload: cost.DefaultWorkload, Cost: calibration}
		plan, err := transform.Plan(context.Background(), m, o)
		if err != nil {
			b.Fatal(err)
		}
		if len(plan.Steps) == 0 {
			b.Fatal("nothing was reordered")
		}
	}
}
