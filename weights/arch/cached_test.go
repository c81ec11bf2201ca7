package arch

import (
	"strings"
	"testing"
)

// Of the kinds of index with scales in the embedded families, only these reach a KV cache. A latent vector of queries does
// not reach a cache, but is marked too, because a family file does not distinguish it from a latent vector of keys and
// values.
var cachedKinds = map[string]bool{
	"qk": true, "pair": true, "rest": true, "nope": true, "v": true, "kv_latent_norm": true, "q_latent_norm": true,
	"encoder_qk": true, "encoder_v": true, "cross_qk": true, "cross_v": true,
	"attn_norm": false, "mlp_norm": false, "moe_norm": false, "cross_norm": false, "final_norm": false,
	"encoder_attn_norm": false, "encoder_mlp_norm": false, "encoder_norm": false,
	"ffn": false, "expert_ffn": false, "shared_ffn": false, "encoder_ffn": false, "embed": false, "projection": false,
}

func TestCached(t *testing.T) {
	seen := map[string]bool{}
	for name, config := range tiny(t) {
		_, l := synthetic(t, familyOf(t, config), string(config))
		for _, x := range l.Indices {
			want, listed := cachedKinds[x.Kind]
			switch {
			case !x.Scale && x.Cached:
				t.Errorf("%s: %s takes no powers of two, and is said to reach a KV cache", name, x.Name)
			case x.Scale && !listed:
				t.Errorf("%s: does %s reach a KV cache? List it", name, x.Name)
			case x.Scale && x.Cached != want:
				t.Errorf("%s: %s reaches a KV cache: %v, want %v", name, x.Name, x.Cached, want)
			}
			seen[x.Kind] = seen[x.Kind] || x.Scale
		}
	}
	for kind := range cachedKinds {
		if !seen[kind] {
			t.Errorf("no model of the catalogue scales %s", kind)
		}
	}
}

// A key that all query heads share belongs to no head's index, but the cache stores it, too.
func TestSharedKeyIsCached(t *testing.T) {
	const shared = `{"family": "mine", "like": "llama", "model_types": ["mine"],
		"indices": [{"name": "pair", "per": ["layer"], "length": "pairs", "uses": "2", "sign": "always", "scale": "always"}]}`
	config := strings.Replace(llamaConfig, `"llama"`, `"mine"`, 1)
	_, l := synthetic(t, mustParse(t, shared), config)
	if x := l.Index("layers.0.pair"); x == nil || !x.Cached {
		t.Errorf("%+v", x)
	}
}
