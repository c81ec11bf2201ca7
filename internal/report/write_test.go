package report_test

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/internal/chart"
	"github.com/lowtoggle/lowtoggle/internal/htmlcheck"
	"github.com/lowtoggle/lowtoggle/internal/report"
)

// long is a name that must be broken on a phone.
const long = "model.language_model.vision_tower.encoder.layers.12.self_attention.query_key_value_projection.weight"

// example returns a document with every kind of block, with text everywhere.
func example(text string) *report.Document {
	c := chart.Chart{Title: text, Panels: []chart.Panel{{Title: text, Lines: []chart.Line{
		{Name: "before" + text, X: []float64{0, 1, 2}, Y: []float64{1, 3, 2}, Low: []float64{0, 2, 1}, High: []float64{2, 4, 3}},
		{Name: "after", X: []float64{0, 1}, Y: []float64{2, 1}, Titles: []string{text, text}, Style: chart.Style{Colour: 3, Marker: 2}},
	}, Marks: []chart.Mark{{X: 1, Label: text}}}}}
	bars := chart.Chart{Title: text, Panels: []chart.Panel{{Title: text, PartNames: []string{"predicted"}, Bars: []chart.Bar{
		{Name: "mlp.up_proj", Parts: []float64{94}, Interval: []float64{92, 96}, Label: "−6.0 %"}, {Name: text, Parts: []float64{103}, Label: text},
	}}}}
	table := &report.Table{Head: []string{"layer", "energy\nbefore", text}, Rows: [][]string{{long, "1.000", "–"}, {text, text, "−6.1 %"}, {"total", "", "−6.0 %"}}}
	return &report.Document{
		Title: "Conversion of " + text, Subtitle: "model → " + text, Program: "lowtoggle", Version: "1", Command: "lowtoggle convert " + text, Date: "today",
		Main: []report.Figure{{"energy, prefill", "−6.1 %", "95 %: −7.0 … −5.2 %", report.Predicted}, {"perplexity" + text, "+0.08 %", "", report.Computed},
			{"joules per token", "1.234 J", "before: 1.300 J", report.Measured}, {"energy", "−3 %", "", report.Simulated}},
		Sections: []*report.Section{
			{Title: "What was done" + text, Blocks: []report.Block{{Table: table}, {Text: "A paragraph. " + text},
				{Remark: &report.Remark{Word: "note", Text: text}}, {Remark: &report.Remark{Word: "warning", Text: "stands out " + long, Alert: true}}}},
			{Title: "Empty"},
			{Title: "Charts", Blocks: []report.Block{{Picture: &report.Picture{Chart: c, Caption: "Values. " + text}}, {Picture: &report.Picture{Chart: bars}},
				{Folded: &report.Section{Title: "more" + text, Blocks: []report.Block{{Table: table}, {Picture: &report.Picture{Chart: bars, Caption: "again"}}}}}}},
			{Title: "Last", Blocks: []report.Block{{Text: "end"}}},
		},
		Origins: []report.Origin{{"energies", report.Predicted, "calibration " + text}, {text, report.Measured, "NVIDIA H200 (H200-3f2a)"}},
	}
}

func written(t interface{ Fatal(...any) }, d *report.Document) []byte {
	var b bytes.Buffer
	if err := d.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestAnyText: a report with any text is well-formed, refers to no other file and shows all characters.
func TestAnyText(t *testing.T) {
	check := func(t interface {
		Fatal(...any)
		Errorf(string, ...any)
	}, text string) {
		if problems := htmlcheck.Check(written(t, example(text))); problems != nil {
			t.Errorf("%q: %q", text, problems)
		}
	}
	for _, text := range []string{"", " ", "<script>alert(1)</script>", `"><img src=x onerror=x>`, "</style></title>", "a\u202eb\x00\x1b[31m", "&amp; &", "{{.}}", "javascript:x", "]]>", "<!--", "\xff"} {
		check(t, text)
	}
	rapid.Check(t, func(t *rapid.T) { check(t, rapid.String().Draw(t, "text")) })
}

// TestContents: the page has the document's figures with their origin, tables, origins and command.
func TestContents(t *testing.T) {
	html := string(written(t, example("<foreign>\u202e")))
	for _, want := range []string{
		"<title>Conversion of &lt;foreign&gt;\\u202e</title>", `<span class="how predicted">predicted</span>`, `<span class="how simulated">simulated</span>`,
		"energy<br>before", `<tr class="total">`, "<code>lowtoggle convert &lt;foreign&gt;\\u202e</code>", "NVIDIA H200 (H200-3f2a)", "lowtoggle 1, today.", "<details>",
		`<li class="alert"><b>warning:</b>`, `<a href="#section-2">Charts</a>`, `viewBox="0 0 420 `,
	} {
		if !strings.Contains(html, want) {
			t.Errorf("no %s", want)
		}
	}
	for _, reject := range []string{"Empty", "<foreign>", "\u202e", "http-equiv=\"refresh\""} {
		if strings.Contains(html, reject) {
			t.Errorf("%q is on the page", reject)
		}
	}
	if again := string(written(t, example("<foreign>\u202e"))); again != html {
		t.Error("the same document gives other bytes")
	}
}

// TestNumbersStayWhole: groups of digits are not separated at the end of a line.
func TestNumbersStayWhole(t *testing.T) {
	d := &report.Document{Title: "x", Sections: []*report.Section{{Title: "x", Blocks: []report.Block{{Text: "32 640 of 1 234 567 tokens, 5 of 12, −6.1 %"}}}}}
	if html := string(written(t, d)); !strings.Contains(html, "32\u00a0640 of 1\u00a0234\u00a0567 tokens, 5 of 12, −6.1\u00a0%") {
		t.Error(html)
	}
}
