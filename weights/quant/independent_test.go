package quant_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// valuesFile holds the digests that bench/dequantise.py computed of the values of each folder.
const valuesFile = "testdata/values.json"

// digested is the record of a folder.
type digested struct {
	Files  string           `json:"files"` // SHA-256 of its safetensors files
	Values map[string]value `json:"values"`
}

type value struct {
	Shape  []int  `json:"shape"`
	SHA256 string `json:"sha256"` // of the float32 values
}

// TestValuesOfAnIndependentReader: all values have the bits that bench/dequantise.py gives them.
func TestValuesOfAnIndependentReader(t *testing.T) {
	folders := map[string]string{}
	for _, q := range testmodel.Quantisations {
		folders[q.Name] = testmodel.QuantisedLayer(t, q, 128, 128)
	}
	for name, generate := range layers {
		for seed := range uint64(6) {
			l := generate(draw{rand.New(rand.NewPCG(seed, 2))})
			folders[fmt.Sprintf("%s, seed %d", name, seed)] = checkpoint(t, l.config, l.tensors...).Dir
		}
	}
	got := map[string]digested{}
	for name, dir := range folders {
		m := testmodel.Open(t, dir)
		d, err := quant.Describe(m)
		testmodel.OK(t, err)
		sum := sha256.New()
		for _, f := range m.Files() {
			sum.Write(f.Data())
		}
		own := digested{hex.EncodeToString(sum.Sum(nil)), map[string]value{}}
		for _, w := range quant.Group(m, d).All {
			if w.Quantised != nil {
				own.Values[w.Name] = value{w.Shape, digest(w)}
			}
		}
		if len(own.Values) > 0 {
			got[name] = own
		} else {
			delete(folders, name)
		}
	}
	if *goldenfile.Update {
		record(t, folders, got)
	}
	js, err := os.ReadFile(valuesFile)
	testmodel.OK(t, err)
	var want map[string]digested
	testmodel.OK(t, json.Unmarshal(js, &want))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("digests of values, as %s has them and as they are here (files differ: run with -update): (-want +got)\n%s", valuesFile, diff)
	}
}

func digest(w *quant.Weight) string {
	values := w.ReadRows(nil, 0, w.Rows)
	for i := range len(values) / 4 {
		if v := math.Float32frombits(binary.LittleEndian.Uint32(values[4*i:])); v != v {
			binary.LittleEndian.PutUint32(values[4*i:], 0x7FC00000)
		}
	}
	sum := sha256.Sum256(values)
	return hex.EncodeToString(sum[:])
}

// record runs the independent reader on the folders.
func record(t *testing.T, folders map[string]string, files map[string]digested) {
	t.Helper()
	names := slices.Sorted(maps.Keys(folders))
	args := []string{filepath.Join("..", "..", "bench", "dequantise.py")}
	for _, name := range names {
		args = append(args, folders[name])
	}
	cmd := exec.CommandContext(t.Context(), "python3", args...)
	var errors bytes.Buffer
	cmd.Stderr = &errors
	js, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, errors.Bytes())
	}
	var read map[string]map[string]value
	testmodel.OK(t, json.Unmarshal(js, &read))
	all := map[string]digested{}
	for _, name := range names {
		all[name] = digested{files[name].Files, read[folders[name]]}
	}
	js, err = json.MarshalIndent(all, "", " ")
	testmodel.OK(t, err)
	testmodel.OK(t, os.MkdirAll(filepath.Dir(valuesFile), 0o777))
	testmodel.OK(t, os.WriteFile(valuesFile, append(js, '\n'), 0o666))
}
