package pattern

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	for text, want := range map[string]string{
		"normal(0,0.02) | round(4) | sparse(0.5, block=16x16)": "normal(0,0.02) | round(4) | sparse(0.5,block=16x16)",
		" normal ( 0 , 1e0 )|\n\tabs()|round( 4 ,nearest)":     "normal(0,1) | abs | round(4)",
		"normal(sigma=2^10, mean=-2^-3)":                       "normal(-2^-3,1024)",
		"const(2^16) | scale(0.0009765625)":                    "const(2^16) | scale(2^-10)",
		"const(-65536) | shift(1000000) | clip(0.00001)":       "const(-2^16) | shift(1e6) | clip(1e-5)",
		"zeros | flip(50%) | sparse(share=0.1%)":               "zeros | flip(0.5) | sparse(0.001)",
		"zeros | sort(by=within,share=100%)":                   "zeros | sort(by=within)",
		"zeros | sort(1) | sort(30%,by=rows)":                  "zeros | sort | sort(0.3)",
		"zeros | random(high=2,low=1) | zero(high=0)":          "zeros | random(low=1,high=2) | zero(low=0)",
		"zeros | repeat(columns=4) | repeat(rows=1)":           "zeros | repeat(columns=4) | repeat(rows=1)",
		"set(4, uniform(low=-1,high=1)) | round(2,truncate)":   "set(4,uniform(-1,1)) | round(2,truncate)",
		"set(source=zeros, size=1)":                            "set(1,zeros)",
		"tensor( a/b (c), d|e=f.st:x.w )":                      "tensor(a/b (c), d|e=f.st:x.w)",
		`tensor("a:b)c:x")`:                                    `tensor("a:b)c:x")`,
		`tensor("a:x")`:                                        "tensor(a:x)",
	} {
		p, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if p.String() != want {
			t.Errorf("%q is spelt %q, want %q", text, p, want)
		}
		if again := MustParse(p.String()); again != p {
			t.Errorf("%q parses to %q", p, again)
		}
	}
}

// TestSyntaxErrors: ‸ marks the place of each error in the text.
func TestSyntaxErrors(t *testing.T) {
	for marked, want := range map[string]string{
		"‸":                                  "expected a source (normal,",
		"normal(0,1) |‸":                     "expected a step (shift,",
		"‸abs":                               "found abs, which is a step",
		"‸gaussian(0,1)":                     "found gaussian: use normal, uniform, const, zeros, set or tensor",
		"‸nromal(0,1)":                       "did you mean normal?",
		"zeros | ‸sparce(0.5)":               "did you mean sparse?",
		"zeros | ‸Sort":                      "did you mean sort?",
		"zeros | ‸normal(0,1)":               "can only come first",
		"zeros ‸abs":                         `expected | and a step, found "abs"`,
		"zeros | abs ‸)":                     `expected | and a step, or the end, found ")"`,
		"normal(0‸)":                         "needs sigma",
		"zeros | round‸":                     "round needs bits: a whole number from 0 to 23",
		"normal(0,‸-1)":                      `expected sigma, a number from 0 on, found "-1"`,
		"normal(‸nan,1)":                     `expected mean, a number, found "nan"`,
		"normal(0,‸1e39)":                    "sigma is 1e39, and the largest magnitude is 3.4e38 (float32)",
		"normal(0,‸2^1000)":                  "sigma",
		"normal(0,‸)":                        `found ")"`,
		"normal(0 ‸1)":                       "expected , or )",
		"normal(0,1‸":                        "found the end",
		"normal(0,1,‸2)":                     "expected ) after the arguments of normal",
		"normal(0,‸mean=1)":                  "mean is given twice",
		"normal(0,‸sigmma=1)":                "did you mean sigma?",
		"zeros | abs(‸1)":                    "abs takes no argument",
		"zeros | abs(‸x=1)":                  "abs takes no argument",
		"uniform(1,‸0)":                      "from low (1) on",
		"uniform(high=‸0,low=1)":             "from low (1) on",
		"zeros | round(‸1.5)":                "a whole number from 0 to 23",
		"zeros | round(‸24)":                 "a whole number from 0 to 23",
		"zeros | round(4,‸truncat)":          "did you mean truncate?",
		"zeros | signs(‸columms)":            "did you mean columns?",
		"zeros | sort(‸columns)":             "did you mean by=columns?",
		"zeros | sort(by=‸up)":               "use rows, columns or within",
		"zeros | random(‸4)":                 "did you mean low=4 or high=4?",
		"zeros | zero‸":                      "zero needs low= or high=",
		"zeros | sparse(0.5,block=‸16)":      "rows and columns as in 16x16",
		"zeros | sparse(0.5,block=‸0x1)":     "rows and columns as in 16x16",
		"zeros | sparse(‸101%)":              "a number from 0 to 1",
		"set(2,‸set(2,zeros))":               "expected normal, uniform, const or zeros, found set",
		"set(2,‸abs)":                        "found abs",
		"tensor(‸a)":                         "expected PATH:NAME",
		"tensor(‸a:)":                        "expected PATH:NAME",
		"tensor‸":                            "tensor needs path:name: as in ",
		"tensor(a:b‸":                        "expected ) after PATH:NAME",
		`tensor(‸"a:b)`:                      "the closing quotation mark is missing",
		"zeros | scale(2^-3) | ‸unknownstep": "use shift, scale",
	} {
		text := strings.Replace(marked, "‸", "", 1)
		_, err := Parse(text)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("%q: error %v", text, err)
			continue
		}
		if at := strings.Index(marked, "‸"); syntax.Pos != at || syntax.Text != text || !strings.Contains(syntax.Msg, want) {
			t.Errorf("%q: %q at byte %d, want %q at %d", text, syntax.Msg, syntax.Pos, want, at)
		}
	}
}

// TestLargestBlock: a block has at most 2⁴⁰ rows and 2⁴⁰ columns.
func TestLargestBlock(t *testing.T) {
	for block, ok := range map[string]bool{"1099511627776x1": true, "1x1099511627776": true, "1099511627777x1": false, "1x1099511627777": false} {
		if _, err := Parse("zeros | sparse(0.5,block=" + block + ")"); (err == nil) != ok {
			t.Errorf("%s: %v", block, err)
		}
	}
}

func TestSyntaxErrorShowsThePlace(t *testing.T) {
	err := &SyntaxError{Text: "tensor(ä\n:x) | foo", Pos: len("tensor(ä\n:x) | "), Msg: "no"}
	if want := "no\n  tensor(ä·:x) | foo\n                 ^"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}

func TestWith(t *testing.T) {
	p, err := MustParse("normal(0,1)").With("scale(2^-3) | abs")
	if err != nil || p != MustParse("normal(0,1) | scale(0.125) | abs") {
		t.Errorf("%v, %v", p, err)
	}
	var syntax *SyntaxError
	if p, err = p.With("zeros"); !errors.As(err, &syntax) || syntax.Text != "zeros" || p != (Pattern{}) {
		t.Errorf("%v, %v: a source was appended", p, err)
	}
	if _, err = p.With("abs"); err == nil {
		t.Error("a step was appended to the zero pattern")
	}
}

func TestText(t *testing.T) {
	type point struct{ P Pattern }
	want := point{MustParse(`tensor(a"b:c) | abs`)}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got point
	if err := json.Unmarshal(data, &got); err != nil || got != want {
		t.Errorf("%s became %v, %v", data, got, err)
	}
	if _, err := json.Marshal(point{}); err == nil {
		t.Error("the zero pattern was written")
	}
	if err := json.Unmarshal([]byte(`{"P":"abs"}`), &got); err == nil {
		t.Error("no pattern was read")
	}
}

func TestTensorAndLocal(t *testing.T) {
	if path, name, ok := MustParse("tensor(a:b:c) | abs").Tensor(); path != "a:b" || name != "c" || !ok {
		t.Errorf("%q %q %v", path, name, ok)
	}
	for _, p := range []Pattern{MustParse("zeros"), MustParse("normal(0,1)"), {}} {
		if _, _, ok := p.Tensor(); ok {
			t.Errorf("%q has a tensor", p)
		}
	}
	for text, want := range map[string]bool{
		"normal(0,1) | transpose | repeat(rows=4) | signs(random) | round(3)": true,
		"tensor(a:b)":            true,
		"zeros | signs(rows)":    false,
		"zeros | sort(0) | abs":  false,
		"zeros | reorder(rows)":  false,
		"zeros | grid(4) | abs":  false,
		"zeros | signs(columns)": false,
	} {
		if got := MustParse(text).Local(); got != want {
			t.Errorf("%s: local %v", text, got)
		}
	}
}

// FuzzParse: no text causes a panic, errors point into the text, and parsing a canonical text gives the same text.
func FuzzParse(f *testing.F) {
	for _, o := range operations {
		f.Add(o.Example)
	}
	f.Add(`tensor("a\x00b:c") | random(low=1,high=2^2)`)
	f.Add("set(2^3, uniform(-50%, 1e-3)) | round(bits=4, mode=truncate) | sort(by=within)")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || syntax.Pos < 0 || syntax.Pos > len(text) || syntax.Msg == "" || err.Error() == "" {
				t.Fatalf("error %#v", err)
			}
			return
		}
		again, err := Parse(p.String())
		if err != nil || again != p {
			t.Fatalf("%q is spelt %q, which parses to %q, %v", text, p, again, err)
		}
		path, name, ok := p.Tensor()
		if path2, name2, ok2 := again.Tensor(); path2 != path || name2 != name || ok2 != ok {
			t.Fatalf("the tensor %q %q became %q %q", path, name, path2, name2)
		}
	})
}
