package htmlcheck

import (
	"strings"
	"testing"
)

const good = `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>t</title><style>a { color: red; }</style></head>
<body><header><h1>t</h1></header><main><section id="s"><h2>s</h2><p><a href="#s">s</a></p></section></main></body></html>`

// TestCheckComplains: Check finds every kind of problem.
func TestCheckComplains(t *testing.T) {
	if problems := Check([]byte(good)); problems != nil {
		t.Fatalf("%q", problems)
	}
	for want, change := range map[string][2]string{
		"does not begin":        {"<!DOCTYPE html>\n", ""},
		"<script> in <main>":    {"<main>", "<main><script></script>"},
		"<a onclick>":           {`<a `, `<a onclick="x" `},
		"<img> in <p>":          {"<p>", `<p><img src="x"/>`},
		"leads out":             {`href="#s"`, `href="https://example.org"`},
		"leads nowhere":         {`href="#s"`, `href="#other"`},
		"not unique":            {`<h2>`, `<h2 id="s">`},
		"another file":          {"color: red", "background: url(x)"},
		"closed by":             {"</h2>", ""},
		"in <ul>":               {"<p>", "<ul>text</ul><p>"},
		"has no attribute lang": {` lang="en"`, ""},
		"invisible":             {">t</h1>", ">t\u202e</h1>"},
		"0 elements title":      {"<title>t</title>", ""},
		"invalid character":     {">t</h1>", ">a & b</h1>"},
	} {
		html := strings.Replace(good, change[0], change[1], 1)
		if problems := strings.Join(Check([]byte(html)), "\n"); !strings.Contains(problems, want) {
			t.Errorf("%s: found %q", want, problems)
		}
	}
}
