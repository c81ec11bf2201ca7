package transform_test

import (
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/fakestore"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/demo"
	"github.com/lowtoggle/lowtoggle/weights/synth"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// TestStoreCard: a conversion with tokens to a store writes the files of a conversion to a disk, with the measured
// loss in the model card. This also holds if the index is written last.
func TestStoreCard(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	ok(t, demo.Write(dir))
	file, err := tokens.Open(tokens.Path(dir))
	ok(t, err)
	for i := range file.Parts {
		p := &file.Parts[i]
		p.N, p.T = 4, 16
		p.Sequences = p.Sequences[:p.N]
		for k := range p.Sequences {
			p.Sequences[k] = p.Sequences[k][:p.T]
			for n := range p.Sequences[k] {
				p.Sequences[k][n] %= 64
			}
		}
	}
	for name, o := range map[string]synth.Options{"one file": {}, "shards": {ShardBytes: 30_000}} {
		t.Run(name, func(t *testing.T) {
			x := inStore(t, o, func(s *fakestore.Server) http.Handler { return s })
			m, err := x.source(t, t.Context())
			ok(t, err)
			defer m.Close()
			convert := func(out string, change func(*transform.ConvertOptions)) *transform.Conversion {
				tok, err := transform.NewTokens(m, file, nil, nil, 0)
				ok(t, err)
				tok.Dir = t.TempDir()
				o := transform.ConvertOptions{Given: x.p, Folder: named}
				o.Tokens = tok
				change(&o)
				c, err := transform.Convert(t.Context(), m, out, o)
				ok(t, err)
				return c
			}
			out := filepath.Join(t.TempDir(), "out")
			convert(out, func(*transform.ConvertOptions) {})
			want := files(t, out)
			if !strings.Contains(want["README.md"], "Measured on ") {
				t.Fatalf("on a disk: %s", want["README.md"])
			}
			inStore := func(resume bool) {
				c := convert("s3://models/out", func(o *transform.ConvertOptions) {
					o.Store, o.Version, o.Resume = place(t, "s3://models/out"), "1", resume
				})
				if c.Loss == nil {
					t.Error("the loss was not measured")
				}
				if got := x.store.Objects("models", "out/"); !maps.Equal(got, want) {
					t.Errorf("other files than on a disk: %v", got["README.md"])
				}
			}
			inStore(false)
			inStore(true) // finished before
			made, err := weights.OpenStore(t.Context(), place(t, "s3://models/out"), "")
			ok(t, err)
			ok(t, made.Close())
		})
	}
}
