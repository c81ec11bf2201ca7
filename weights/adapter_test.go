package weights

import (
	"fmt"
	"slices"
	"testing"
)

func TestOpenWithAnAdapter(t *testing.T) {
	for name, base := range map[string]map[string][]byte{
		"one file":        {"model.safetensors": shard(t, "a", "b")},
		"one of any name": {"weights.safetensors": shard(t, "a", "b")},
		"an index":        {"x.safetensors": shard(t, "a"), "y.safetensors": shard(t, "b"), IndexName: []byte(`{"weight_map": {"a": "x.safetensors", "b": "y.safetensors"}}`)},
	} {
		dir := t.TempDir()
		for file, data := range base {
			put(t, dir, file, data)
		}
		put(t, dir, AdapterName, shard(t, "lora"))
		put(t, dir, AdapterConfigName, []byte("{}"))
		m, err := Open(dir)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer m.Close()
		if m.Adapter == nil || string(m.AdapterConfig) != "{}" || len(m.Infos()) != 2 || len(m.Files()) != len(m.Shards)+1 {
			t.Errorf("%s: %+v", name, m)
		}
		if x, ok := m.Tensor("lora"); !ok || x.File != m.Adapter.Path {
			t.Errorf("%s: the adapter's tensor is %v", name, x)
		}
		if slices.Contains(m.Others, AdapterName) || !slices.Contains(m.Others, AdapterConfigName) {
			t.Errorf("%s: others are %v", name, m.Others)
		}
		if stray := m.StrayAdapters(); stray != nil {
			t.Errorf("%s: stray are %v", name, stray)
		}
	}
}

func TestAnAdapterAlone(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, AdapterName, shard(t, "lora"))
	const what = "%s: holds an adapter and no base model: copy the folder of its base model%s (links will do), add adapter_model.safetensors and adapter_config.json to the copy, and give the copy"
	_, err := Open(dir)
	wantError(t, err, fmt.Sprintf(what, dir, ""))
	put(t, dir, AdapterConfigName, []byte(`{"base_model_name_or_path": "org/base"}`))
	_, err = Open(dir)
	wantError(t, err, fmt.Sprintf(what, dir, " org/base"))
}

func TestStrayAdapters(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "model.safetensors", shard(t, "a"))
	for _, file := range []string{AdapterConfigName, "adapter_model.bin", "one/" + AdapterName, "one/" + AdapterConfigName, "two/" + AdapterConfigName, "three/README.md"} {
		put(t, dir, file, []byte("{}"))
	}
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if got, want := m.StrayAdapters(), []string{"adapter_model.bin", "one/" + AdapterName, "two/" + AdapterConfigName}; !slices.Equal(got, want) {
		t.Errorf("stray are %q, want %q", got, want)
	}
}

// TestOpenWithADamagedAdapter: a file that is cut short is an error, and the files opened before are closed.
func TestOpenWithADamagedAdapter(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "model.safetensors", shard(t, "a"))
	path := put(t, dir, AdapterName, []byte("short"))
	_, err := Open(dir)
	wantError(t, err, path+": is a text file: a model's weights are in safetensors files: give the model's folder; if this file should hold weights, download it again")
}
