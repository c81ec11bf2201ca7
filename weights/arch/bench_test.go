package arch

import "testing"

const largeConfig = `{"model_type": "llama", "hidden_size": 16384, "num_hidden_layers": 126, "vocab_size": 128256,
	"intermediate_size": 53248, "num_attention_heads": 128, "num_key_value_heads": 128}`

// BenchmarkResolve resolves a model of 126 layers with 128 KV heads each, which has 48 000 indices.
func BenchmarkResolve(b *testing.B) {
	f := find(b, Families(), "llama")
	infos, err := f.Expect([]byte(largeConfig))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Resolve([]byte(largeConfig), infos); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGather(b *testing.B) {
	_, l := synthetic(b, find(b, Families(), "llama"), largeConfig)
	a := l.Claims["model.layers.3.self_attn.q_proj.weight"].Axes[0]
	perm := make([]int, 128)
	for i := range perm {
		perm[i] = 127 - i
	}
	for b.Loop() {
		a.Gather(func(index string) []int {
			if index == "layers.3.kv" {
				return perm
			}
			return nil
		})
	}
}
