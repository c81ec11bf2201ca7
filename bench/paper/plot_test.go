package paper

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"unicode/utf8"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/internal/chart"
)

// wellFormed reads an XML document to its end and counts elements by name.
func wellFormed(t *testing.T, f File) map[string]int {
	t.Helper()
	count := map[string]int{}
	for d := xml.NewDecoder(bytes.NewReader(f.Data)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return count
		}
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		if e, ok := token.(xml.StartElement); ok {
			count[e.Name.Local]++
		}
	}
}

// TestFigures: figures are well-formed, depend on nothing but the results, and show every setup.
func TestFigures(t *testing.T) {
	var results []Result
	for _, s := range Setups()[4:7] {
		results = append(results, invented(s, func(id string, x float64) float64 { return 1 - x/1e5 })...)
	}
	figures, err := Figures(t.Context(), results)
	if err != nil {
		t.Fatal(err)
	}
	backwards := slices.Clone(results)
	slices.Reverse(backwards)
	again, err := Figures(t.Context(), backwards)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"figure-3.svg", "figure-4.svg", "figure-5.svg", "figure-6.svg", "figure-8.svg"}
	for i, f := range figures {
		if f.Name != names[i] {
			t.Errorf("%s, want %s", f.Name, names[i])
		}
		if !bytes.Equal(f.Data, again[i].Data) {
			t.Errorf("%s differs when the results come in another order", f.Name)
		}
		panels := map[string]int{"figure-3.svg": 3, "figure-4.svg": 3}[f.Name]
		if panels == 0 {
			panels = 4
		}
		lines := 3 * panels
		switch f.Name {
		case "figure-5.svg":
			lines-- // 5b is not measured where the weights alone change
		case "figure-8.svg":
			lines = 2 * 3 // each setup is in two of four panels
		}
		count := wellFormed(t, f)
		if count["rect"] != panels || count["title"] != lines+1 {
			t.Errorf("%s: %d panels and %d titles, want %d and %d", f.Name, count["rect"], count["title"], panels, lines+1)
		}
		for _, bad := range []string{"NaN", "Inf", "-0.0"} {
			if bytes.Contains(f.Data, []byte(bad)) {
				t.Errorf("%s contains %s", f.Name, bad)
			}
		}
		if bytes.Contains(f.Data, []byte("not measured")) {
			t.Errorf("%s lacks something", f.Name)
		}
	}
}

// TestFiguresOfLittle: nothing, one point, and points without an interval can be drawn as well.
func TestFiguresOfLittle(t *testing.T) {
	all := invented(fp16(), uniform)
	for i := range all {
		all[i].HalfWidth = math.NaN()
	}
	for name, results := range map[string][]Result{"nothing": nil, "one point": all[:1], "no interval": all} {
		figures, err := Figures(t.Context(), results)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range figures {
			wellFormed(t, f)
			if bytes.Contains(f.Data, []byte("NaN")) || bytes.Contains(f.Data, []byte("Inf")) {
				t.Errorf("%s: %s is not a number somewhere", name, f.Name)
			}
			if missing := bytes.Contains(f.Data, []byte("not measured")); missing != (name != "no interval" || f.Name == "figure-8.svg") {
				t.Errorf("%s: %s says that something was not measured: %v", name, f.Name, missing)
			}
		}
	}
}

// TestStyles: no two setups have the same style.
func TestStyles(t *testing.T) {
	seen := map[chart.Style]string{}
	for _, s := range Setups() {
		style := styleOf(s, allConditions(Setups()))
		if seen[style] != "" {
			t.Errorf("%v looks like %s", s, seen[style])
		}
		seen[style] = s.String()
	}
	for _, typ := range arith.Types() {
		if !slices.Contains(coloured, typ) {
			t.Errorf("%v has no colour", typ)
		}
	}
}

// TestTickLabels: labels of ticks do not touch, for the points of every experiment.
func TestTickLabels(t *testing.T) {
	label := regexp.MustCompile(`<text x="([0-9.]+)" y="([0-9.]+)" text-anchor="middle">([^<]*)</text>`)
	for _, e := range experiments {
		for _, typ := range usedTypes() {
			p := chart.Panel{X: experimentAxis(e), Lines: []chart.Line{{}}}
			p.X.Label = ""
			for _, at := range e.Points(typ) {
				p.Lines[0].X, p.Lines[0].Y = append(p.Lines[0].X, at.X), append(p.Lines[0].Y, 1)
			}
			svg := string(chart.Chart{Panels: []chart.Panel{p}, Columns: 2}.SVG())
			right, labels := 0.0, 0
			for _, m := range label.FindAllStringSubmatch(svg, -1) {
				x, err := strconv.ParseFloat(m[1], 64)
				if err != nil {
					t.Fatal(err)
				}
				if m[3] == "" {
					continue
				}
				half := 3.6 * float64(utf8.RuneCountInString(m[3]))
				if x-half < right+4 {
					t.Errorf("%s, %v: the label %s touches the one before", e.ID, typ, m[3])
				}
				right = x + half
				labels++
			}
			if labels < 2 {
				t.Errorf("%s, %v: %d labels", e.ID, typ, labels)
			}
		}
	}
}
