package verify_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/verify"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Short names for functions that all tests here use.
var (
	ok   = testmodel.OK
	open = testmodel.Open
)

// source writes a small model of two blocks in two shards with other files.
func source(t *testing.T, name string, d weights.DType) string {
	t.Helper()
	return testmodel.Tiny(t, name, d).Dir
}

// convert applies passes and returns the new folder. If least is above 0, it is a budget of output SNR in dB.
func convert(t *testing.T, src, passes string, least float64) string {
	t.Helper()
	m := open(t, src)
	return testplan.Applied(t, m, nil, testplan.Make(t, m, passes, least))
}

func report(t *testing.T, src, out string) *verify.Report {
	t.Helper()
	r, err := transform.Verify(t.Context(), open(t, src), open(t, out), transform.VerifyOptions{})
	ok(t, err)
	return r
}

// problems returns all problems of a report.
func problems(r *verify.Report) string {
	all := slices.Clone(r.Problems)
	for _, t := range r.Tensors {
		if t.Problem != "" {
			all = append(all, t.Name+": "+t.Problem)
		}
	}
	return strings.Join(all, "\n")
}

func tensorOf(t *testing.T, r *verify.Report, name string) verify.Tensor {
	t.Helper()
	i := slices.IndexFunc(r.Tensors, func(x verify.Tensor) bool { return x.Name == name })
	if i < 0 {
		t.Fatalf("the report has no tensor %q", name)
	}
	return r.Tensors[i]
}

func wantOK(t *testing.T, r *verify.Report) {
	t.Helper()
	if !r.OK || problems(r) != "" {
		t.Errorf("not ok: %s", problems(r))
	}
}

func wantProblem(t *testing.T, r *verify.Report, want string) {
	t.Helper()
	if r.OK || !strings.Contains(problems(r), want) {
		t.Errorf("ok: %v; the problems lack %q: %s", r.OK, want, problems(r))
	}
}

// edit changes a tensor of a folder in place.
func edit(t *testing.T, dir, tensor string, fn func(data []byte)) {
	t.Helper()
	found := false
	testmodel.Edit(t, dir, func(info weights.Info, data []byte) {
		if info.Name == tensor {
			found = true
			fn(data)
		}
	})
	if !found {
		t.Fatalf("no tensor %q", tensor)
	}
}

// replace writes a new file in the place of a file that may still be mapped.
func replace(t *testing.T, path string, data []byte) {
	t.Helper()
	ok(t, os.Remove(path))
	ok(t, os.WriteFile(path, data, 0o666))
}

// editManifest edits the manifest as a JSON object.
func editManifest(t *testing.T, dir string, fn func(m map[string]any)) {
	t.Helper()
	path := filepath.Join(dir, plan.ManifestName)
	js, err := os.ReadFile(path)
	ok(t, err)
	var m map[string]any
	dec := json.NewDecoder(bytes.NewReader(js))
	dec.UseNumber()
	ok(t, dec.Decode(&m))
	fn(m)
	js, err = json.Marshal(m)
	ok(t, err)
	ok(t, os.WriteFile(path, js, 0o666))
}

// vouch sets the manifest's digests to those of the current shards, so that only comparing tensors can find changes.
func vouch(t *testing.T, dir string) {
	t.Helper()
	editManifest(t, dir, func(m map[string]any) {
		for _, s := range m["shards"].([]any) {
			shard := s.(map[string]any)
			data, err := os.ReadFile(filepath.Join(dir, shard["file"].(string)))
			ok(t, err)
			sum := sha256.Sum256(data)
			shard["output_sha256"] = hex.EncodeToString(sum[:])
		}
	})
}

// steps returns a manifest's steps of one pass.
func steps(m map[string]any, pass string) (list []map[string]any) {
	for _, s := range m["plan"].(map[string]any)["steps"].([]any) {
		if step := s.(map[string]any); step["pass"] == pass {
			list = append(list, step)
		}
	}
	return list
}
