package cli

import (
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
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
	for text, want := range map[string]source{
		"zeros":             {},
		"normal(0,0.02)":    {sigma: 0.02},
		"normal(-1, 2e-3)":  {mean: -1, sigma: 2e-3},
		"normal(3,0)":       {mean: 3},
		"const(0.5)":        {mean: 0.5},
		"const( -7 )":       {mean: -7},
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
		"":                  `"" is neither normal(MEAN,SIGMA), const(VALUE) nor zeros, nor a tensor`,
		"m":                 `m: which tensor? write m:NAME, or m: for all its linear layers`,
		"ones":              `"ones" is neither`,
		"Zeros":             `"Zeros" is neither`,
		"zeros()":           `"zeros()" is neither`,
		"normal":            `"normal" is neither`,
		"normal)":           `"normal)" is neither`,
		"normal(0,2":        `"normal(0,2" is neither`,
		"uniform(0,1)":      `"uniform(0,1)" is neither`,
		"normal()":          "1 number, not 2; write it as normal(MEAN,SIGMA)",
		"normal(1)":         "1 number, not 2",
		"normal(0,1,2)":     "3 numbers, not 2",
		"normal(0,)":        `"" is not a number`,
		"normal(0,1))":      `"1)" is not a number`,
		"normal(0;1)":       "1 number, not 2",
		"normal(0,-1)":      "normal(0,-1): a negative deviation; write it as normal(MEAN,SIGMA)",
		"normal(nan,1)":     `"nan" is not a number`,
		"normal(0,inf)":     `"inf" is not a number`,
		"normal(0,1e999)":   `"1e999" is not a number`,
		"const()":           `const(): "" is not a number; write it as const(VALUE)`,
		"const(1,2)":        "2 numbers, not 1",
		"const(half)":       `"half" is not a number`,
		"nowhere:w":         "nowhere: there is no such file or folder",
		"nowhere:":          "nowhere: there is no such file or folder",
		"m:[":               `"[" is no pattern`,
		"m:layers[0.weight": `"layers[0.weight" is no pattern`,
	} {
		if have, err := parseSource(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, error %v, want %q", text, have, err, want)
		}
	}
}

// FuzzParseSource holds that a source which is accepted is one thing: finite draws that print back
// to the same, or a path that exists with a pattern that can be matched.
func FuzzParseSource(f *testing.F) {
	for _, text := range []string{"zeros", "normal(0,0.02)", "normal(-1e3, 0x1p-2)", "const(-0)", ".:", ".:*.weight", ".:[a-", "normal(0,1", "a:b:c", ":", "\x00:"} {
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
		if s.path != "" {
			if s.path+":"+s.tensors != text || s.mean != 0 || s.sigma != 0 {
				t.Fatalf("%q became %+v", text, s)
			}
			if _, err := os.Stat(s.path); err != nil {
				t.Fatal(err)
			}
			if _, err := path.Match(s.tensors, "model.layers.0.weight"); err != nil {
				t.Fatalf("%q: %v", s.tensors, err)
			}
			return
		}
		if s.tensors != "" || math.IsNaN(s.mean-s.mean) || math.IsNaN(s.sigma-s.sigma) || s.sigma < 0 {
			t.Fatalf("%q became %+v", text, s)
		}
		printed := "normal(" + number(s.mean) + "," + number(s.sigma) + ")"
		if again, err := parseSource(printed); err != nil || again.mean != s.mean || again.sigma != s.sigma {
			t.Fatalf("%q prints as %s, which is %+v (%v)", text, printed, again, err)
		}
		if draws := strings.HasPrefix(text, "normal("); !draws && s.sigma != 0 {
			t.Fatalf("%q is random: %+v", text, s)
		}
	})
}
