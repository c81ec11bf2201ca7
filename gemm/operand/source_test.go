package operand

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/weights"
)

func TestParse(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"m", "a:b"} {
		if err := os.Mkdir(name, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	absolute := filepath.Join(t.TempDir(), "model.safetensors")
	if err := os.WriteFile(absolute, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"zeros", "normal(-1, 2e-3)", "const( -7 )", "uniform(0,1)|abs", "normal(0,1) | round(4) | sparse(50%)", "tensor(m:w) | round(4)"} {
		if have, err := Parse(text); err != nil || have != (Source{Text: text, Pattern: pattern.MustParse(text)}) {
			t.Errorf("%s: %+v (%v)", text, have, err)
		}
	}
	for text, want := range map[string]Source{
		"m:":                {Path: "m"},
		"m:a.weight":        {Path: "m", Tensors: "a.weight"},
		"m:*up_proj.weight": {Path: "m", Tensors: "*up_proj.weight"},
		"m:a:b":             {Path: "m", Tensors: "a:b"},
		"./m:":              {Path: "./m"},
		"a:b:c":             {Path: "a:b", Tensors: "c"},
		absolute + ":w":     {Path: absolute, Tensors: "w"},
	} {
		want.Text = text
		if have, err := Parse(text); err != nil || have != want {
			t.Errorf("%s: %+v (%v), want %+v", text, have, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                  "expected a source (normal, uniform, const, zeros, set or tensor), found the end",
		"m":                 `m: no tensor is named: write m:NAME, or m: for all linear layers`,
		"ones":              "expected a source, found ones",
		"model":             "or a tensor, as in MODEL:NAME",
		"Zeros":             "did you mean zeros?",
		"normal(0,2":        "expected , or ) in normal, found the end",
		"normal(0,-1)":      "normal(0,-1)\n           ^",
		"zeros | sparce(1)": "did you mean sparse?",
		"m:w | round(4)":    "m:w | round(4): only patterns can have steps: write tensor(m:w) | round(4)",
		"nowhere:w":         "nowhere: there is no such file or folder: name a model's folder, or a safetensors file",
		"nowhere:":          "nowhere: there is no such file or folder: name a model's folder, or a safetensors file",
		"nowhere:w|abs":     "expected a source",
		"m:[":               `"[" is not a valid wildcard`,
		"m:layers[0.weight": `"layers[0.weight" is not a valid wildcard`,
	} {
		if have, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, error %v, want %q", text, have, err, want)
		}
	}
}

// FuzzParse: an accepted source is a pattern, or a path with valid wildcards that exists or is a URL.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"zeros", "normal(0,0.02)", "const(-0) | flip(1%)", ".:", ".:*.weight", ".:[a-", "normal(0,1", "a:b:c", ":", "\x00:", ".:w|abs", "tensor(.:w)", "s3://b/m:w", "0://:"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		if s.Text != text {
			t.Fatalf("%q became %q", text, s.Text)
		}
		if s.Path == "" {
			if p, err := pattern.Parse(text); err != nil || s.Pattern != p || s.Tensors != "" {
				t.Fatalf("%q became %+v (%v)", text, s, err)
			}
			return
		}
		if s.Path+":"+s.Tensors != text || s.Pattern != (pattern.Pattern{}) {
			t.Fatalf("%q became %+v", text, s)
		}
		if _, err := os.Stat(s.Path); err != nil && !weights.IsURL(s.Path) {
			t.Fatal(err)
		}
		if _, err := path.Match(s.Tensors, "model.layers.0.weight"); err != nil {
			t.Fatalf("%q: %v", s.Tensors, err)
		}
	})
}
