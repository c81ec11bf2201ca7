package apply

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// FuzzPart: the content of parts.json and the record of a shard are errors, or belong to this conversion.
func FuzzPart(f *testing.F) {
	own := common{partsVersion, "1.0", 3, "00", ""}
	disk := diskPlace{dir: f.TempDir()}
	folder := &partsFolder{place: disk, dir: disk.dir, common: own}
	const shard = "a.safetensors"
	for _, name := range []string{resultName, recordsName} {
		if err := os.Mkdir(filepath.Join(folder.dir, name), 0o777); err != nil {
			f.Fatal(err)
		}
	}
	head, _, err := weights.EncodeHeader([]weights.Info{{Name: "x", DType: weights.U8, Shape: []int{2}}}, nil)
	if err != nil {
		f.Fatal(err)
	}
	path := folder.path(shard)
	if err := os.WriteFile(path, append(head, 1, 2), 0o666); err != nil {
		f.Fatal(err)
	}
	size, version, err := folder.stat(f.Context(), shard)
	if err != nil {
		f.Fatal(err)
	}
	want, err := weights.OpenFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { want.Close() })
	r := record{common: own, Part: 2, Bytes: size, Head: hex.EncodeToString(digestOf(head)), Written: version}
	r.File = shard
	for _, of := range []any{own, r} {
		js, err := json.Marshal(of)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(js)
	}
	f.Add([]byte(`{"parts_version": 1, "parts": -1, "plan_sha256": null}`))
	if err := os.WriteFile(disk.at(recordName(shard)), must(json.Marshal(r)), 0o666); err != nil {
		f.Fatal(err)
	}
	if found, err := folder.check(f.Context(), shard, want, 2); err != nil || found.Bytes != r.Bytes {
		f.Fatalf("the seed is refused: %+v %v", found, err)
	}
	f.Fuzz(func(t *testing.T, js []byte) {
		for _, name := range []string{filepath.Join(folder.dir, partsName), disk.at(recordName(shard))} {
			if err := os.WriteFile(name, js, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if was, err := folder.was(t.Context()); err == nil && was != own {
			t.Errorf("parts of %+v", was)
		}
		if found, err := folder.check(t.Context(), shard, want, 2); err == nil && (found.common != own || found.Part != 2 || found.File != shard || found.Bytes != r.Bytes) {
			t.Errorf("record %+v", found)
		}
	})
}

func must(js []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return js
}
