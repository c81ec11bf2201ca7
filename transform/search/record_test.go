package search

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// kept is a value to record.
type kept struct {
	Curve  curve
	Losses map[string]float64
}

func aRecord() kept {
	return kept{
		curve{{Energy: 0.91}, {Steps: []*plan.Step{{Pass: "round", Tensor: "a", Data: pass.Bits{Zeroed: 3}}}, Error: 1.0 / 3, Energy: 0.7}},
		map[string]float64{"a": 1e-300, "b <&> ü": math.Pi},
	}
}

func TestRecordGivesBackWhatWasSaved(t *testing.T) {
	f := Folder{filepath.Join(t.TempDir(), "new", "record"), "a key"}
	names := []string{"a", "layers/model.layers.0.mlp.up_proj.weight", "layers/a/0.25", "../up", "", ".", "a b%2f\\:é"}
	var got kept
	for i, name := range names {
		if found, err := f.Load(name, &got); found || err != nil {
			t.Fatalf("%q: found %v, error %v, before a value was saved", name, found, err)
		}
		want := aRecord()
		want.Losses["n"] = float64(i)
		testmodel.OK(t, f.Save(name, want))
	}
	for i, name := range names {
		got = kept{}
		found, err := f.Load(name, &got)
		if !found || err != nil || got.Losses["n"] != float64(i) || got.Losses["b <&> ü"] != math.Pi || got.Curve[1].Error != 1.0/3 {
			t.Fatalf("%q: found %v, error %v: %+v", name, found, err, got)
		}
		if bits, err := plan.Data[pass.Bits](got.Curve[1].Steps[0]); err != nil || bits.Zeroed != 3 {
			t.Errorf("%q: the step's data is %+v, error %v", name, bits, err)
		}
	}
	entries, err := os.ReadDir(f.Dir)
	testmodel.OK(t, err)
	if above, _ := os.ReadDir(filepath.Dir(f.Dir)); len(entries) != len(names) || len(above) != 1 {
		t.Errorf("%v and %v were written for %d names", entries, above, len(names))
	}
}

func TestRecordOfAnotherSearchIsNotFound(t *testing.T) {
	dir := t.TempDir()
	testmodel.OK(t, Folder{dir, "one"}.Save("a", aRecord()))
	for _, key := range []string{"", "another", "One", "one "} {
		got := kept{}
		if found, err := (Folder{dir, key}).Load("a", &got); found || err != nil || got.Curve != nil {
			t.Errorf("key %q: found %v, error %v: %+v", key, found, err, got)
		}
	}
	testmodel.OK(t, Folder{dir, "another"}.Save("a", aRecord())) // replaces it
	if found, err := (Folder{dir, "one"}).Load("a", new(kept)); found || err != nil {
		t.Errorf("found %v, error %v", found, err)
	}
}

// TestRecordThatIsDamagedIsNotFound: a file with any byte changed, or cut short anywhere, gives the saved value or is
// not found.
func TestRecordThatIsDamagedIsNotFound(t *testing.T) {
	f := Folder{t.TempDir(), "key"}
	testmodel.OK(t, f.Save("a", aRecord()))
	path := filepath.Join(f.Dir, "a.json")
	whole, err := os.ReadFile(path)
	testmodel.OK(t, err)
	found := 0
	try := func(t testmodel.TB, data []byte) {
		testmodel.OK(t, os.WriteFile(path, data, 0o666))
		got := kept{}
		there, err := f.Load("a", &got)
		testmodel.OK(t, err)
		if !there {
			if got.Curve != nil || got.Losses != nil {
				t.Fatalf("%q is not found, and gave %+v", data, got)
			}
			return
		}
		found++
		if got.Losses["a"] != 1e-300 || got.Losses["b <&> ü"] != math.Pi || len(got.Curve) != 2 || got.Curve[0].Energy != 0.91 || got.Curve[1].Error != 1.0/3 {
			t.Fatalf("%q gave %+v", data, got)
		}
	}
	for n := range whole {
		try(t, whole[:n])
	}
	try(t, bytes.Repeat([]byte{0}, len(whole)))
	if found != 0 {
		t.Errorf("%d truncated files are found", found)
	}
	rapid.Check(t, func(t *rapid.T) {
		data := bytes.Clone(whole)
		data[rapid.IntRange(0, len(data)-1).Draw(t, "byte")] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		try(t, data)
	})
	try(t, whole)
	if found == 0 {
		t.Error("the whole file is not found")
	}
}

func TestRecordIsWholeOrAsItWas(t *testing.T) {
	f := Folder{t.TempDir(), "key"}
	testmodel.OK(t, f.Save("a", 1.5))
	testmodel.WantError(t, f.Save("a", math.NaN()), filepath.Join(f.Dir, "a.json"), "NaN")
	path := filepath.Join(f.Dir, "a.json")
	before, err := os.Stat(path)
	testmodel.OK(t, err)
	held, err := os.Open(path) // like a reader in the middle of the file
	testmodel.OK(t, err)
	defer held.Close()
	left := filepath.Join(f.Dir, ".a.json42") // left by a killed process
	testmodel.OK(t, os.WriteFile(left, []byte("longer than what is written next"+string(make([]byte, 100))), 0o666))
	var v float64
	found, err := f.Load("a", &v)
	if !found || err != nil || v != 1.5 {
		t.Errorf("found %v, error %v: %g", found, err, v)
	}
	testmodel.OK(t, f.Save("a", 2.5))
	if found, err = f.Load("a", &v); !found || err != nil || v != 2.5 {
		t.Errorf("found %v, error %v: %g", found, err, v)
	}
	after, err := os.Stat(path)
	testmodel.OK(t, err)
	if os.SameFile(before, after) {
		t.Error("the file was written in place")
	}
	entries, err := os.ReadDir(f.Dir)
	testmodel.OK(t, err)
	if len(entries) != 2 || entries[0].Name() != filepath.Base(left) {
		t.Errorf("a new file stayed: %v", entries)
	}
}

func TestRecordIsReadWhileItIsWritten(t *testing.T) {
	f := Folder{t.TempDir(), "key"}
	testmodel.OK(t, f.Save("a", aRecord()))
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		for range 20 {
			if err := f.Save("a", aRecord()); err != nil {
				t.Error(err)
			}
		}
	})
	for range 200 {
		if found, err := f.Load("a", new(kept)); !found || err != nil {
			t.Fatalf("found %v, error %v", found, err)
		}
	}
}

func TestRecordThatCannotBeReadOrWritten(t *testing.T) {
	dir := t.TempDir()
	f := Folder{filepath.Join(dir, "file"), "key"}
	testmodel.OK(t, os.WriteFile(f.Dir, nil, 0o666))
	testmodel.WantError(t, f.Save("a", 1), f.Dir)
	f.Dir = filepath.Join(dir, "folder")
	testmodel.OK(t, os.MkdirAll(filepath.Join(f.Dir, "a.json"), 0o777))
	_, err := f.Load("a", new(int))
	testmodel.WantError(t, err, "a.json")
	testmodel.WantError(t, f.Save("a", 1), "a.json")
}

// TestClaim: a folder belongs to the first search that claims it. A damaged claim is not one's own.
func TestClaim(t *testing.T) {
	f := Folder{filepath.Join(t.TempDir(), "new"), "one"}
	for range 2 {
		testmodel.OK(t, f.Claim())
	}
	for _, key := range []string{"", "another"} {
		if err := (Folder{f.Dir, key}).Claim(); !errors.Is(err, ErrOther) {
			t.Errorf("key %q: %v", key, err)
		}
	}
	path := filepath.Join(f.Dir, "search.json")
	whole, err := os.ReadFile(path)
	testmodel.OK(t, err)
	testmodel.OK(t, os.WriteFile(path, whole[:len(whole)/2], 0o666))
	if err := f.Claim(); !errors.Is(err, ErrOther) {
		t.Errorf("a damaged claim: %v", err)
	}
	testmodel.OK(t, os.Remove(path))
	testmodel.OK(t, os.Mkdir(path, 0o777))
	if err := f.Claim(); err == nil || errors.Is(err, ErrOther) {
		t.Errorf("a claim that cannot be read: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	testmodel.OK(t, os.WriteFile(file, nil, 0o666))
	if err := (Folder{file, "one"}).Claim(); err == nil {
		t.Error("a file in place of the folder is claimed")
	}
}
