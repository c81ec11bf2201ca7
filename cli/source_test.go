package cli

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/weights"
)

func TestParseSource(t *testing.T) {
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
		if have, err := parseSource(text); err != nil || have != (source{text: text, pattern: pattern.MustParse(text)}) {
			t.Errorf("%s: %+v (%v)", text, have, err)
		}
	}
	for text, want := range map[string]source{
		"m:":                {path: "m"},
		"m:a.weight":        {path: "m", tensors: "a.weight"},
		"m:*up_proj.weight": {path: "m", tensors: "*up_proj.weight"},
		"m:a:b":             {path: "m", tensors: "a:b"},
		"./m:":              {path: "./m"},
		"a:b:c":             {path: "a:b", tensors: "c"},
		absolute + ":w":     {path: absolute, tensors: "w"},
	} {
		want.text = text
		if have, err := parseSource(text); err != nil || have != want {
			t.Errorf("%s: %+v (%v), want %+v", text, have, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                  "expected a source (normal, uniform, const, zeros, set or tensor), found the end",
		"m":                 `m: which tensor? write m:NAME, or m: for all its linear layers`,
		"ones":              "expected a source, found ones",
		"model":             "or a tensor, as in MODEL:NAME",
		"Zeros":             "did you mean zeros?",
		"normal(0,2":        "expected , or ) in normal, found the end",
		"normal(0,-1)":      "normal(0,-1)\n           ^",
		"zeros | sparce(1)": "did you mean sparse?",
		"m:w | round(4)":    "m:w | round(4): only patterns have steps; write tensor(m:w) | round(4)",
		"nowhere:w":         "nowhere: there is no such file or folder",
		"nowhere:":          "nowhere: there is no such file or folder",
		"nowhere:w|abs":     "expected a source",
		"m:[":               `"[" matches nothing`,
		"m:layers[0.weight": `"layers[0.weight" matches nothing`,
	} {
		if have, err := parseSource(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, error %v, want %q", text, have, err, want)
		}
	}
}

// FuzzParseSource holds that a source which is accepted is one thing: a pattern, or a path that exists
// with wildcards that can be matched.
func FuzzParseSource(f *testing.F) {
	for _, text := range []string{"zeros", "normal(0,0.02)", "const(-0) | flip(1%)", ".:", ".:*.weight", ".:[a-", "normal(0,1", "a:b:c", ":", "\x00:", ".:w|abs", "tensor(.:w)"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseSource(text)
		if err != nil {
			return
		}
		if s.text != text {
			t.Fatalf("%q became %q", text, s.text)
		}
		if s.path == "" {
			if p, err := pattern.Parse(text); err != nil || s.pattern != p || s.tensors != "" {
				t.Fatalf("%q became %+v (%v)", text, s, err)
			}
			return
		}
		if s.path+":"+s.tensors != text || s.pattern != (pattern.Pattern{}) {
			t.Fatalf("%q became %+v", text, s)
		}
		if _, err := os.Stat(s.path); err != nil {
			t.Fatal(err)
		}
		if _, err := path.Match(s.tensors, "model.layers.0.weight"); err != nil {
			t.Fatalf("%q: %v", s.tensors, err)
		}
	})
}

// TestHolds: a type must hold what a pattern's source draws, whatever its steps make of it.
func TestHolds(t *testing.T) {
	for text, want := range map[string]string{
		"normal(0,32)": "", "normal(0,64)": "normal(0,64) goes beyond what I8 holds (127)", "const(128) | scale(0.5)": "const(128) goes beyond",
		"const(127)": "", "uniform(-127,127)": "", "normal(0,0.01)": "normal(0,0.01) is nothing but zeros in I8: choose larger values",
		"zeros": "", "const(1) | scale(1000)": "", "normal(0,32) | sparse(1)": "", "tensor(nowhere:w)": "",
	} {
		if err := usual(text).holds(t.Context(), weights.I8, 0); err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{"normal(0,1e30)", "const(3e38)", "normal(0,1e-44)"} {
		if err := usual(text).holds(t.Context(), weights.F32, 0); err != nil {
			t.Error(err)
		}
	}
}
