//go:build unix

package weights_test

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/fakestore"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/bucket"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// watchedStore records the memory of data from stores while it is read.
type watchedStore struct {
	weights.Store
	peak *atomic.Int64
}

func (w watchedStore) ReadAt(ctx context.Context, o weights.Object, p []byte, at int64) error {
	for held := weights.HeldBytes(); ; {
		if was := w.peak.Load(); was >= held || w.peak.CompareAndSwap(was, held) {
			return w.Store.ReadAt(ctx, o, p, at)
		}
	}
}

// mostHeld is more than four workers need: for each a tensor of 384 kB with the blocks around it, and data that is read
// ahead.
const mostHeld = 8 << 20

// TestPlanMemory: planning and converting hold a bounded number of bytes of a model in a store in memory, for models of any
// size. Passes over the whole model read one tensor after the other.
func TestPlanMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("slow with the race detector")
	}
	weights.LittleMemory(t)
	const workers = 4
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(t.TempDir(), "model")
	config := []byte(`{"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":256,"intermediate_size":768,"num_hidden_layers":14,
"num_attention_heads":4,"num_key_value_heads":4,"vocab_size":512,"rms_norm_eps":1e-5,"tie_word_embeddings":false,"torch_dtype":"bfloat16",
"max_position_embeddings":64,"rope_theta":10000.0,"hidden_act":"silu"}`)
	ok(synth.Folder(t.Context(), config, dir, synth.Options{Seed: 1}))
	store := fakestore.New("models")
	entries, err := os.ReadDir(dir)
	ok(err)
	var all int64
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		ok(err)
		store.Put("models", "source/"+e.Name(), data)
		all += int64(len(data))
	}
	fakestore.Start(t, store)
	f, err := bucket.Open("s3://models/source")
	ok(err)
	for _, passes := range []string{"scale,reorder,signs,grid=4", "shift=4/epilogue,round=2"} {
		var peak atomic.Int64
		m, err := weights.OpenStore(t.Context(), watchedStore{f, &peak}, "")
		ok(err)
		defer m.Close()
		chosen, err := transform.ParsePasses(passes)
		ok(err)
		p, err := transform.Plan(t.Context(), m, transform.Options{Passes: chosen, Cost: testmodel.TogglesCost{}, Workers: workers})
		ok(err)
		planned := peak.Swap(0)
		_, err = transform.Apply(t.Context(), m, p, filepath.Join(t.TempDir(), "out"), transform.ApplyOptions{Workers: workers})
		ok(err)
		t.Logf("%s: plan held %d kB, convert %d kB of %d kB", passes, planned>>10, peak.Load()>>10, all>>10)
		if most := int64(mostHeld); planned > most || peak.Load() > most {
			t.Errorf("%s: plan held %d bytes and convert %d of %d, want at most %d", passes, planned, peak.Load(), all, most)
		}
		ok(m.Close())
	}
}
