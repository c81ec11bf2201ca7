//go:build unix

package weights_test

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/fakestore"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/bucket"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// countedStore counts the bytes that are read of each object.
type countedStore struct {
	weights.Store
	mu       sync.Mutex
	bytes    int64
	requests map[string]int // by the object's path
}

func (c *countedStore) ReadAt(ctx context.Context, o weights.Object, p []byte, at int64) error {
	c.mu.Lock()
	c.bytes += int64(len(p))
	c.requests[o.Path]++
	c.mu.Unlock()
	return c.Store.ReadAt(ctx, o, p, at)
}

// stored puts a model's folder into a store, and opens it there. It also returns the bytes of all files.
func stored(t *testing.T, dir string) (m *weights.Model, read *countedStore, all int64) {
	t.Helper()
	server := fakestore.New("models")
	for name, data := range testmodel.Files(t, dir) {
		server.Put("models", "source/"+name, []byte(data))
		all += int64(len(data))
	}
	fakestore.Start(t, server)
	f, err := bucket.Open("s3://models/source")
	testmodel.OK(t, err)
	read = &countedStore{Store: f, requests: map[string]int{}}
	m, err = weights.OpenStore(t.Context(), read, "")
	testmodel.OK(t, err)
	t.Cleanup(func() { m.Close() })
	return m, read, all
}

// TestPlanReadsLittle: planning without a budget reads samples of a model in a store: some rows of each layer, in blocks, and the ends
// of each tensor. Reading in order in a long sample does not read the whole layer.
func TestPlanReadsLittle(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	config := []byte(`{"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":512,"intermediate_size":16384,"num_hidden_layers":1,
"num_attention_heads":8,"num_key_value_heads":8,"vocab_size":512,"rms_norm_eps":1e-5,"tie_word_embeddings":false,"torch_dtype":"bfloat16",
"max_position_embeddings":64,"rope_theta":10000.0,"hidden_act":"silu"}`)
	testmodel.OK(t, synth.Folder(t.Context(), config, dir, synth.Options{Seed: 1}))
	m, read, all := stored(t, dir)
	passes, err := transform.ParsePasses("round=4")
	testmodel.OK(t, err)
	p, err := transform.Plan(t.Context(), m, transform.Options{Passes: passes, Cost: testmodel.TogglesCost{}, Workers: 1})
	testmodel.OK(t, err)
	t.Logf("%d kB of %d kB in %d requests", read.bytes>>10, all>>10, read.requests["model.safetensors"])
	if len(p.Steps) < 7 || read.bytes > all/4 {
		t.Errorf("planning %d steps read %d bytes of %d, want at most a quarter", len(p.Steps), read.bytes, all)
	}
}

// TestDescribedOnce: planning and writing a part each read the config of a quantisation once, because they find the quantised weights
// once.
func TestDescribedOnce(t *testing.T) {
	i := slices.IndexFunc(testmodel.Quantisations, func(q testmodel.Quantisation) bool { return q.Side == weights.GPTQConfigName })
	dir := testmodel.Quantised(t, testmodel.Quantisations[i], testmodel.With{})
	m, read, _ := stored(t, dir)
	once := func(what string) {
		t.Helper()
		if n := read.requests[weights.GPTQConfigName]; n != 1 {
			t.Errorf("%s read the config of the quantisation %d times", what, n)
		}
		clear(read.requests)
	}
	passes, err := transform.ParsePasses("scales")
	testmodel.OK(t, err)
	p, err := transform.Plan(t.Context(), m, transform.Options{Passes: passes, Cost: testmodel.TogglesCost{}, Version: "test"})
	testmodel.OK(t, err)
	once("planning")
	_, err = transform.ApplyPart(t.Context(), m, p, filepath.Join(t.TempDir(), "out"), apply.Part{Number: 1, Of: 1},
		transform.PartOptions{ApplyOptions: transform.ApplyOptions{Version: "test"}})
	testmodel.OK(t, err)
	once("a part")
}
