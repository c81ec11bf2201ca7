package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// power returns a chart like profile's.
func power() Chart {
	x := []float64{0.001, 0.01, 0.1, 1, 2}
	return Chart{Title: "power & clock", Panels: []Panel{
		{
			Title: "<power>", X: Axis{Label: "seconds", Log: 10}, Y: Axis{Label: "watts", With: []float64{0}},
			Lines: []Line{
				{Name: "a", X: x, Y: []float64{100, 300, 690, 700, 690}, Low: []float64{90, 290, 680, 690, 689}, High: []float64{110, 310, 700, 710, 691}},
				{Name: "b", Style: Style{Colour: 1, Dashes: 1, Marker: 1}, X: x, Y: []float64{100, 200, math.NaN(), 400, 410}},
			},
			Marks: []Mark{{1, "steady execution"}, {1.05, "steady power"}, {math.NaN(), "never"}},
		},
		{Title: "clock", X: Axis{Label: "seconds", Log: 10}, Y: Axis{Label: "MHz"}, Lines: []Line{{Name: "a", X: x, Y: []float64{1980, 1980, 1500, 1450, 1451}}}},
	}}
}

// split returns a chart like that of components.
func split() Chart {
	return Chart{Title: "split", Panels: []Panel{{
		Title: "watts by component", X: Axis{Label: "watts"}, PartNames: []string{"static", "tensor cores", "memory"},
		Bars: []Bar{
			{Name: "8192³ bf16, normal(0,0.02)", Parts: []float64{120, 500, 60}}, {Name: "copy \"cached\"", Parts: []float64{120, 0, -3}},
			{Name: "unknown", Parts: []float64{math.NaN(), math.Inf(1), 5}}, {Name: "short", Parts: []float64{100}},
		},
		Marks: []Mark{{700, "cap"}},
	}}}
}

// elements returns the elements of a document in order. The document must be well-formed.
func elements(t interface{ Fatal(...any) }, svg []byte) (list []xml.StartElement, text string) {
	var all strings.Builder
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return list, all.String()
		}
		if err != nil {
			t.Fatal(err, string(svg))
		}
		switch e := token.(type) {
		case xml.StartElement:
			list = append(list, e.Copy())
		case xml.CharData:
			all.Write(e)
		}
	}
}

func count(list []xml.StartElement, name string) int {
	n := 0
	for _, e := range list {
		if e.Name.Local == name {
			n++
		}
	}
	return n
}

func TestLines(t *testing.T) {
	svg := power().SVG()
	list, text := elements(t, svg)
	if n := count(list, "rect"); n != 2 {
		t.Errorf("%d frames", n)
	}
	for _, want := range []string{"power & clock", "<power>", "watts", "steady execution", "steady power", "0.001", "MHz"} {
		if !strings.Contains(text, want) {
			t.Errorf("the chart lacks %q", want)
		}
	}
	if strings.Contains(text, "never") {
		t.Error("a mark outside the axis is drawn")
	}
	// A line starts again after a gap, and the legend has each style once.
	if !regexp.MustCompile(`stroke-dasharray="6 3" d="M[^M"]+M[^M"]+"`).Match(svg) {
		t.Error("the gap is bridged")
	}
	if n := bytes.Count(svg, []byte("<g fill=")); n != 3+2 {
		t.Errorf("%d lines and entries", n)
	}
	if !bytes.Equal(svg, power().SVG()) {
		t.Error("the same chart gives other bytes")
	}
}

// TestMarks: labels of neighbouring marks are in different rows, and inside the frame.
func TestMarks(t *testing.T) {
	list, _ := elements(t, Chart{Panels: []Panel{{
		Lines: []Line{{X: []float64{0, 1}, Y: []float64{0, 1}}},
		Marks: []Mark{{0.5, "one mark"}, {0.51, "another"}, {0.9, "far away"}, {1, "at the end"}, {0.502, "third"}, {0.503, "fourth"}, {0.504, "fifth"}},
	}}}.SVG())
	type place struct{ y, anchor string }
	var places []place
	for _, e := range list {
		p := place{attribute(e, "y"), attribute(e, "text-anchor")}
		if y, err := strconv.ParseFloat(p.y, 64); err == nil && e.Name.Local == "text" && p.anchor != "middle" && y > marginTop+10 && y < marginTop+70 && attribute(e, "x") != "58.0" {
			places = append(places, p)
		}
	}
	want := []place{{"44.0", "start"}, {"58.0", "start"}, {"72.0", "start"}, {"86.0", "start"}, {"58.0", "start"}, {"44.0", "end"}}
	if !slices.Equal(places, want) {
		t.Errorf("labels at %v, want %v", places, want)
	}
}

// TestMarksApart: no line of a mark goes through a label, no two labels touch, and all are inside the frame.
func TestMarksApart(t *testing.T) {
	line := regexp.MustCompile(`<path d="M([0-9.]+) ([0-9.]+)V([0-9.]+)"[^>]*><title>(\w+)</title>`)
	label := regexp.MustCompile(`<text x="([0-9.]+)" y="([0-9.]+)" text-anchor="(start|end)">(m\w*)</text>`)
	number := func(text string) float64 { v, _ := strconv.ParseFloat(text, 64); return v }
	rapid.Check(t, func(t *rapid.T) {
		p := Panel{Lines: []Line{{X: []float64{0, 1}, Y: []float64{0, 1}}}}
		for range rapid.IntRange(1, 8).Draw(t, "marks") {
			at := rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 0.5, 0.501, 0.98, 1})).Draw(t, "at")
			p.Marks = append(p.Marks, Mark{at, "m" + strings.Repeat("x", rapid.IntRange(0, 30).Draw(t, "length"))})
		}
		svg := string(Chart{Panels: []Panel{p}}.SVG())
		type box struct{ from, to, top, bottom float64 }
		var boxes []box
		for _, m := range label.FindAllStringSubmatch(svg, -1) {
			x, y, wide := number(m[1]), number(m[2]), widthOf(m[4])
			if m[3] == "end" {
				x -= wide
			}
			b := box{x, x + wide, y - fontSize, y}
			for _, o := range boxes {
				if b.from < o.to && o.from < b.to && b.top < o.bottom && o.top < b.bottom {
					t.Fatalf("%v and %v touch in %s", b, o, svg)
				}
			}
			if b.from < marginLeft || b.to > usualWidth-marginRight {
				t.Fatalf("%v is outside in %s", b, svg)
			}
			boxes = append(boxes, b)
		}
		lines := line.FindAllStringSubmatch(svg, -1)
		if len(lines) != len(p.Marks) || len(boxes) == 0 {
			t.Fatalf("%d lines and %d labels of %d marks", len(lines), len(boxes), len(p.Marks))
		}
		for _, m := range lines {
			for _, b := range boxes {
				if x := number(m[1]); x > b.from && x < b.to && number(m[2]) < b.bottom {
					t.Fatalf("the line at %v goes through %v in %s", x, b, svg)
				}
			}
		}
	})
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// TestBars: parts are side by side, their lengths proportional to their values; parts without a positive value are left out.
func TestBars(t *testing.T) {
	svg := split().SVG()
	list, text := elements(t, svg)
	part := regexp.MustCompile(`<path d="M([0-9.]+) [0-9.]+H([0-9.]+)v14H[0-9.]+z" fill="(#\w+)"><title>([^<]*)</title>`)
	var names []string
	var watts []float64
	end := 0.0
	for _, m := range part.FindAllStringSubmatch(string(svg), -1) {
		from, _ := strconv.ParseFloat(m[1], 64)
		to, _ := strconv.ParseFloat(m[2], 64)
		names, watts = append(names, m[4]), append(watts, to-from)
		if !strings.Contains(m[4], "static") && !strings.Contains(m[4], "unknown") && from != end {
			t.Errorf("%s begins at %v and not at %v", m[4], from, end)
		}
		end = to
	}
	want := []string{
		"8192³ bf16, normal(0,0.02), static: 120", "8192³ bf16, normal(0,0.02), tensor cores: 500", "8192³ bf16, normal(0,0.02), memory: 60",
		"copy &#34;cached&#34;, static: 120", "unknown, memory: 5", "short, static: 100",
	}
	if !slices.Equal(names, want) {
		t.Fatalf("parts %q", names)
	}
	if math.Abs(watts[1]/watts[0]-500.0/120) > 0.01 || math.Abs(watts[4]/watts[0]-5.0/120) > 0.01 {
		t.Errorf("500, 120 and 5 W take %v, %v and %v pixels", watts[1], watts[0], watts[4])
	}
	for _, want := range []string{"tensor cores", "cap", "watts by component"} {
		if !strings.Contains(text, want) {
			t.Errorf("the chart lacks %q", want)
		}
	}
	if n := count(list, "rect"); n != 1 {
		t.Errorf("%d frames", n)
	}
}

// TestLittle: an empty chart can be drawn, and says that nothing was measured.
func TestLittle(t *testing.T) {
	for name, c := range map[string]Chart{
		"nothing": {}, "a panel": {Panels: []Panel{{}}}, "an empty line": {Panels: []Panel{{Lines: []Line{{}}}}},
		"a point": {Panels: []Panel{{Lines: []Line{{X: []float64{1}, Y: []float64{1}}}}}}, "a bar": {Panels: []Panel{{Bars: []Bar{{}}}}},
	} {
		_, text := elements(t, c.SVG())
		if strings.Contains(text, "not measured") != (name == "a panel") {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// TestMisfits: inconsistent slices are a programming error.
func TestMisfits(t *testing.T) {
	one, two := []float64{1}, []float64{1, 2}
	for name, p := range map[string]Panel{
		"X and Y": {Lines: []Line{{X: one, Y: two}}}, "Low alone": {Lines: []Line{{X: one, Y: one, Low: one}}},
		"Low and Y": {Lines: []Line{{X: two, Y: two, Low: one, High: one}}}, "parts": {Bars: []Bar{{Parts: one}}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			Chart{Panels: []Panel{p}}.SVG()
		}()
	}
}

// TestAnything: a chart of any values is well-formed, has no NaN, and stays inside its frame.
func TestAnything(t *testing.T) {
	number := regexp.MustCompile(`-?[0-9]+\.[0-9]+`)
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.Float64Range(-1000, 1000), rapid.Float64Range(0, 1e-6), rapid.SampledFrom([]float64{0, math.NaN(), math.Inf(1), math.Inf(-1), 1e9}))
		n := rapid.IntRange(0, 8).Draw(t, "points")
		list := func(name string) []float64 { return rapid.SliceOfN(value, n, n).Draw(t, name) }
		base := rapid.SampledFrom([]int{0, 2, 10})
		c := Chart{Title: rapid.String().Draw(t, "title"), Columns: rapid.IntRange(1, 3).Draw(t, "columns"), Panels: []Panel{
			{
				X: Axis{Log: base.Draw(t, "x")}, Y: Axis{Log: base.Draw(t, "y"), With: []float64{1}},
				Lines: []Line{
					{Name: "band", X: list("x"), Y: list("y"), Low: list("low"), High: list("high")},
					{Name: "dots", Style: Style{Colour: 9, Marker: 7, Dashes: 5}, X: list("x"), Y: list("y"), Low: list("low"), High: list("high"), Whiskers: true},
				},
				Marks: []Mark{{value.Draw(t, "mark"), "mark"}},
			},
			{Bars: []Bar{{Name: "bar", Parts: list("parts")}}, PartNames: make([]string, n)},
		}}
		svg := c.SVG()
		elements(t, svg)
		for _, bad := range []string{"NaN", "Inf", "%!"} {
			if bytes.Contains(svg[bytes.Index(svg, []byte("</title>")):], []byte(bad)) {
				t.Fatalf("%s in %s", bad, svg)
			}
		}
		for _, m := range regexp.MustCompile(` d="([^"]*)"`).FindAllSubmatch(svg, -1) {
			for _, text := range number.FindAllString(string(m[1]), -1) {
				if v, err := strconv.ParseFloat(text, 64); err != nil || v < -4 || v > 1500 {
					t.Fatalf("%s in %s", text, svg)
				}
			}
		}
	})
}

// TestPoints: points with titles, intervals in both directions and hollow markers are drawn one by one. A cross is
// never filled.
func TestPoints(t *testing.T) {
	c := Chart{
		Panels: []Panel{{Height: 300, Lines: []Line{
			{X: []float64{1, 2, math.NaN()}, Y: []float64{1, 2, 3}, Low: []float64{0, 1, 2}, High: []float64{2, 3, 4}, Whiskers: true,
				XLow: []float64{0.5, 1.5, 2.5}, XHigh: []float64{1.5, 2.5, 3.5}, Titles: []string{"first", "second", "nowhere"}, Style: Style{Marker: 2, Hollow: true}},
			{X: []float64{1}, Y: []float64{1}, Scattered: true, Style: Style{Marker: cross}},
		}}},
		Legend: []Group{{Entries: []Entry{{Name: "points alone", Style: Style{Marker: cross}, Scattered: true}}}},
	}
	svg := c.SVG()
	list, text := elements(t, svg)
	if !strings.Contains(text, "first") || !strings.Contains(text, "second") || strings.Contains(text, "nowhere") {
		t.Errorf("titles in %q", text)
	}
	if n := bytes.Count(svg, []byte(`<path fill="none" stroke-width="1.3"`)); n != 1+2+1+1 { // the line, its markers, two crosses
		t.Errorf("%d outlines in %s", n, svg)
	}
	if !regexp.MustCompile(`stroke-opacity="0.5" d="M[\d. ]+H[\d.]+M[\d. ]+H[\d.]+"`).Match(svg) {
		t.Errorf("not two intervals of X in %s", svg)
	}
	if count(list, "rect") != 1 || !strings.Contains(string(svg), `height="300"`) {
		t.Error("the panel is not 300 pixels high")
	}
	defer func() {
		if recover() == nil {
			t.Error("a line with a title too few is drawn")
		}
	}()
	c.Panels[0].Lines[0].Titles = []string{"first"}
	c.SVG()
}
