package weights

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// index returns an index file over the given pairs of tensor and shard.
func index(pairs ...string) []byte {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return EncodeIndex(m, int64(len(m)))
}

// twoShards returns a folder of two shards with their index, a configuration and other files.
func twoShards(t testing.TB) map[string][]byte {
	return map[string][]byte{
		"s1.safetensors":     shard(t, "a", "b"),
		"s2.safetensors":     shard(t, "c"),
		IndexName:            index("a", "s1.safetensors", "b", "s1.safetensors", "c", "s2.safetensors"),
		"config.json":        []byte(`{"model_type":"x"}`),
		"tokens.safetensors": shard(t, "tokens"),
		"sub.txt":            []byte("beside"),
		"sub/tokens.txt":     []byte("below"),
		"sub/s1.safetensors": shard(t, "a"),
	}
}

// folder writes files and returns the folder they are in.
func folder(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		put(t, dir, name, data)
	}
	return dir
}

// names lists a model's tensors as file:tensor=data.
func names(t testing.TB, m *Model) (list []string) {
	t.Helper()
	if err := m.Each(func(x Tensor) error {
		list = append(list, fmt.Sprintf("%s:%s=%d", filepath.Base(x.File), x.Name, x.Data))
		return nil
	}); err != nil {
		t.Error(err)
	}
	return list
}

func TestOpenShardedFolder(t *testing.T) {
	checkTwoShards(t, folder(t, twoShards(t)))
}

func checkTwoShards(t *testing.T, dir string) {
	t.Helper()
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"s1.safetensors:a=[1]", "s1.safetensors:b=[2]", "s2.safetensors:c=[1]"}
	if diff := cmp.Diff(want, names(t, m)); diff != "" {
		t.Errorf("tensors (-want +got):\n%s", diff)
	}
	others := []string{"config.json", IndexName, "sub.txt", "sub/s1.safetensors", "sub/tokens.txt", "tokens.safetensors"}
	if diff := cmp.Diff(others, m.Others); diff != "" {
		t.Errorf("other files (-want +got):\n%s", diff)
	}
	if string(m.Config) != `{"model_type":"x"}` || m.Dir != dir || m.Index != filepath.Join(dir, IndexName) {
		t.Errorf("config %s, folder %s, index %s", m.Config, m.Dir, m.Index)
	}
	if x, ok := m.Tensor("c"); !ok || !bytes.Equal(x.Data, []byte{1}) {
		t.Errorf("tensor c: %v, %v", x, ok)
	}
	if _, ok := m.Tensor("tokens"); ok {
		t.Error("found a tensor of a file that the index does not name")
	}
	if infos := m.Infos(); len(infos) != 3 || infos[2].Name != "c" {
		t.Errorf("infos %v", infos)
	}
	if want := int64(len(shard(t, "a", "b")) + len(shard(t, "c"))); m.Size() != want {
		t.Errorf("size %d, want %d", m.Size(), want)
	}
	stop := errors.New("stop")
	visits := 0
	if err := m.Each(func(Tensor) error { visits++; return stop }); err != stop || visits != 1 {
		t.Errorf("Each returned %v after %d tensors", err, visits)
	}
	for range 2 {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenWithoutIndex(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string][]byte
		want  []string
		other []string
	}{
		{"one file of any name", map[string][]byte{"w.safetensors": shard(t, "a"), "x/y.safetensors": nil},
			[]string{"w.safetensors:a=[1]"}, []string{"x/y.safetensors"}},
		{"model.safetensors among others", map[string][]byte{"model.safetensors": shard(t, "a"), "b.safetensors": nil},
			[]string{"model.safetensors:a=[1]"}, []string{"b.safetensors"}},
		{"no tensors", map[string][]byte{"model.safetensors": file(`{}`)}, nil, []string{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, err := Open(folder(t, test.files))
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if diff := cmp.Diff(test.want, names(t, m)); diff != "" {
				t.Errorf("tensors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.other, m.Others); diff != "" {
				t.Errorf("other files (-want +got):\n%s", diff)
			}
			if m.Config != nil || m.Index != "" {
				t.Errorf("config %q, index %q of a folder without them", m.Config, m.Index)
			}
		})
	}
}

// TestNoModel: an empty path and a nil model are errors that say so.
func TestNoModel(t *testing.T) {
	m, err := Open("")
	if err == nil || err.Error() != "no path was given: name a model's folder or a safetensors file" {
		t.Error(err)
	}
	if err := m.Close(); !errors.Is(err, ErrNoModel) {
		t.Error(err)
	}
}

func TestOpenSingleFile(t *testing.T) {
	dir := folder(t, twoShards(t))
	m, err := Open(filepath.Join(dir, "s2.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if diff := cmp.Diff([]string{"s2.safetensors:c=[1]"}, names(t, m)); diff != "" {
		t.Error(diff)
	}
	if m.Dir != dir || m.Index != "" || m.Config != nil || m.Others != nil || m.PartOf != filepath.Join(dir, IndexName) {
		t.Errorf("folder %s, index %q, config %q, others %v, part of %q", m.Dir, m.Index, m.Config, m.Others, m.PartOf)
	}
}

// The configs beside a single file describe the file, unless an index lists the file as one of several, or lists other files
// only.
func TestOpenSingleFileWithConfigs(t *testing.T) {
	for name, c := range map[string]struct {
		index            string
		described, shard bool
	}{
		"no index":              {"", true, false},
		"the only shard":        {`{"weight_map": {"a": "a.safetensors"}}`, true, false},
		"one of two":            {`{"weight_map": {"a": "a.safetensors", "b": "b.safetensors"}}`, false, true},
		"of another model":      {`{"weight_map": {"b": "b.safetensors"}}`, false, false},
		"an index that is none": {`{`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string][]byte{"a.safetensors": shard(t, "a"), "b.safetensors": shard(t, "b"), "config.json": []byte("{}"),
				GPTQConfigName: []byte("{}"), "tokenizer.json": []byte("{}")}
			if c.index != "" {
				files[IndexName] = []byte(c.index)
			}
			m, err := Open(filepath.Join(folder(t, files), "a.safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			var others []string
			if c.described {
				others = []string{"config.json", GPTQConfigName}
			}
			if diff := cmp.Diff(others, m.Others); diff != "" || (m.Config != nil) != c.described || !m.Single || (m.PartOf != "") != c.shard {
				t.Errorf("config %q, single %v, part of %q, other files (-want +got):\n%s", m.Config, m.Single, m.PartOf, diff)
			}
		})
	}
}

// A folder's name may contain characters of glob patterns.
func TestOpenFolderOfOddName(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "[a]*?{b}/w.safetensors", shard(t, "a"))
	m, err := Open(filepath.Join(dir, "[a]*?{b}"))
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
}

func TestMalformedFolders(t *testing.T) {
	const two = `"c":"s2.safetensors"}`
	for _, test := range []struct {
		name   string
		change map[string][]byte // nil: the file is taken away
		want   string            // DIR is the folder, INDEX its index
	}{
		{"shard missing", map[string][]byte{"s2.safetensors": nil},
			`INDEX names the shard s2.safetensors, which is missing: download, copy or make it again (no such file or directory)`},
		{"shard empty", map[string][]byte{"s2.safetensors": {}},
			`DIR/s2.safetensors: the file is empty: download, copy or make it again`},
		{"shard cut short", map[string][]byte{"s2.safetensors": shard(t, "c")[:64]},
			`DIR/s2.safetensors: tensor "c": byte 64: the header needs a file of 65 bytes, and this file has 64: the file is truncated: download, copy or make it again`},
		{"tensor in the wrong shard", map[string][]byte{IndexName: index("a", "s1.safetensors", "b", "s2.safetensors", "c", "s2.safetensors")},
			`DIR/s1.safetensors: tensor "b": byte 121: the index puts this tensor into s2.safetensors: download the index and the shards again`},
		{"tensor in two shards", map[string][]byte{"s2.safetensors": shard(t, "c", "a")},
			`DIR/s2.safetensors: tensor "a": byte 121: the index puts this tensor into s1.safetensors: download the index and the shards again`},
		{"tensor in no shard", map[string][]byte{IndexName: index("a", "s1.safetensors", "b", "s1.safetensors", "c", "s2.safetensors", "d", "s2.safetensors")},
			`INDEX: tensor "d": is not in s2.safetensors: download the index and the shards again`},
		{"tensor that the index lacks", map[string][]byte{"s2.safetensors": shard(t, "c", "d")},
			`DIR/s2.safetensors: tensor "d": byte 121: the index model.safetensors.index.json does not list this tensor: download the index and the shards again`},
		{"shard is the index", map[string][]byte{IndexName: index("a", IndexName)},
			`INDEX: byte 0: the header has 8387229874382703227 bytes, but the format allows at most 100000000: the file is damaged, or is no safetensors file: download or copy it again`},
		{"shard is a folder", map[string][]byte{IndexName: index("a", "sub")}, `DIR/sub: is not a regular file: give a file, not a folder, pipe or device`},

		{"shard above the folder", map[string][]byte{IndexName: index("a", "../s1.safetensors")},
			`INDEX: tensor "a": shard "../s1.safetensors" is not the name of a file in this folder: download the index again`},
		{"shard of an absolute path", map[string][]byte{IndexName: index("a", "/etc/passwd")},
			`INDEX: tensor "a": shard "/etc/passwd" is not the name of a file in this folder: download the index again`},
		{"shard with a backslash", map[string][]byte{IndexName: index("a", `..\s1.safetensors`)},
			`INDEX: tensor "a": shard "..\\s1.safetensors" is not the name of a file in this folder: download the index again`},
		{"shard in a subfolder", map[string][]byte{IndexName: index("a", "sub/s1.safetensors")},
			`INDEX: tensor "a": shard "sub/s1.safetensors" is not the name of a file in this folder: download the index again`},
		{"shard is this folder", map[string][]byte{IndexName: index("a", ".")}, `INDEX: tensor "a": shard "." is not the name of a file in this folder: download the index again`},
		{"shard is the folder above", map[string][]byte{IndexName: index("a", "..")}, `INDEX: tensor "a": shard ".." is not the name of a file in this folder: download the index again`},
		{"shard without a name", map[string][]byte{IndexName: index("a", "")}, `INDEX: tensor "a": shard "" is not the name of a file in this folder: download the index again`},

		{"index empty", map[string][]byte{IndexName: {}}, `INDEX: byte 0: invalid JSON: it ends too early: copy the file again`},
		{"index cut short", map[string][]byte{IndexName: []byte(`{"weight_map":{"a":`)}, `INDEX: byte 19: invalid JSON: it ends too early: copy the file again`},
		{"index without weight_map", map[string][]byte{IndexName: []byte(`{"metadata":{}}`)}, `INDEX: has no tensors in "weight_map": download the index again`},
		{"index without tensors", map[string][]byte{IndexName: []byte(`{"weight_map":{}}`)}, `INDEX: has no tensors in "weight_map": download the index again`},
		{"index is a list", map[string][]byte{IndexName: []byte(`[]`)}, `INDEX: byte 0: the index: expected {, found [`},
		{"weight_map is a list", map[string][]byte{IndexName: []byte(`{"weight_map":["a"]}`)}, `INDEX: byte 14: weight_map: expected {, found [`},
		{"weight_map is null", map[string][]byte{IndexName: []byte(`{"weight_map":null}`)}, `INDEX: byte 14: weight_map: expected {, found null`},
		{"shard is a number", map[string][]byte{IndexName: []byte(`{"weight_map":{"a":1}}`)}, `INDEX: byte 19: weight_map: the value of "a" is 1, not a string`},
		{"weight_map twice", map[string][]byte{IndexName: []byte(`{"weight_map":{` + two + `,"weight_map":{` + two + `}`)},
			`INDEX: byte 37: key "weight_map" appears twice`},
		{"tensor twice", map[string][]byte{IndexName: []byte(`{"weight_map":{"c":"s2.safetensors",` + two + `}`)}, `INDEX: byte 36: key "c" appears twice`},
		{"garbage after the index", map[string][]byte{IndexName: []byte(`{"weight_map":{` + two + `} ]`)}, `INDEX: byte 38: "]" follows the closing brace`},
		{"invalid JSON beside weight_map", map[string][]byte{IndexName: []byte(`{"metadata":{"x":},"weight_map":{` + two + `}`)},
			`INDEX: byte 12: invalid JSON: invalid character '}' looking for beginning of value`},
		{"invalid UTF-8 in the index", map[string][]byte{IndexName: []byte("{\"weight_map\":{\"\xff\":\"s2.safetensors\"}}")}, `INDEX: byte 16: invalid UTF-8: 0xff`},

		{"no index, several files", map[string][]byte{IndexName: nil},
			`DIR: holds 3 safetensors files, but no index model.safetensors.index.json, which lists the files of the model: download the index, or give the one file that is the model`},
		{"no index, no file", map[string][]byte{IndexName: nil, "s1.safetensors": nil, "s2.safetensors": nil, "tokens.safetensors": nil},
			`DIR: holds no safetensors file and no model.safetensors.index.json: a model's folder has *.safetensors and config.json: download the model, or give its folder`},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := twoShards(t)
			for name, data := range test.change {
				files[name] = data
				if data == nil {
					delete(files, name)
				}
			}
			dir := folder(t, files)
			m, err := Open(dir)
			if m != nil {
				m.Close()
			}
			want := strings.NewReplacer("INDEX", filepath.Join(dir, IndexName), "DIR", dir).Replace(test.want)
			wantError(t, err, want)
		})
	}
}

func TestOpenNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "absent")
	_, err := Open(path)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want one that is fs.ErrNotExist", err)
	}
	wantError(t, err, path+": there is no such file or folder: name a model's folder, or a safetensors file")
}

func TestOpenUnreadable(t *testing.T) {
	for _, name := range []string{"s1.safetensors", IndexName, "config.json"} {
		dir := folder(t, twoShards(t))
		path := filepath.Join(dir, name)
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
		if f, err := os.Open(path); err == nil {
			f.Close()
			t.Skip("this user may read every file")
		}
		_, err := Open(dir)
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: error %v, want one that is fs.ErrPermission", name, err)
		}
		wantError(t, err, "open "+path+": permission denied")
	}
}
