package paper

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lowtoggle/lowtoggle/gemm"
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

// TestLooks: no two setups look alike.
func TestLooks(t *testing.T) {
	seen := map[look]string{}
	for _, s := range Setups() {
		l := lookOf(s, ways(Setups()))
		if seen[l] != "" {
			t.Errorf("%v looks like %s", s, seen[l])
		}
		seen[l] = s.String()
	}
	for _, typ := range gemm.Types() {
		if colours[typ] == "" {
			t.Errorf("%v has no colour", typ)
		}
	}
}

// TestAxes: places rise with the values from 0 to 1, and labels of ticks do not touch.
func TestAxes(t *testing.T) {
	check := func(name string, a axis, values []float64) {
		t.Helper()
		slices.Sort(values)
		last := -1.0
		for _, v := range slices.Compact(values) {
			p := a.place(v)
			if p <= last || p < -1e-9 || p > 1+1e-9 {
				t.Errorf("%s: %v stands at %v", name, v, p)
			}
			last = p
		}
		if n := len(a.ticks); n < 2 || n > mostTicks {
			t.Errorf("%s: %d ticks", name, n)
		}
		right := math.Inf(-1)
		for _, tick := range a.ticks {
			half := 0.6 * fontSize * float64(utf8.RuneCountInString(tick.label)) / 2
			at := plotWidth * a.place(tick.value)
			if at-half < right+4 {
				t.Errorf("%s: the label %s touches the one before", name, tick.label)
			}
			if p := a.place(tick.value); p < -1e-9 || p > 1+1e-9 || strings.HasPrefix(tick.label, "-0") {
				t.Errorf("%s: tick %s at %v", name, tick.label, p)
			}
			right = at + half
		}
	}
	for _, e := range experiments {
		var all []float64
		for _, typ := range usedTypes() {
			var values []float64
			for _, at := range e.Points(typ) {
				values = append(values, at.X)
			}
			all = append(all, values...)
			p := panel{log: e.Log, lines: []line{{}}}
			for _, v := range values {
				p.lines[0].dots = append(p.lines[0].dots, dot{v, 1, 0})
			}
			x, _ := p.axes()
			check(e.ID+" "+typ.String(), x, values)
		}
		if e.Log {
			check(e.ID, logarithmic(all), all)
		} else {
			check(e.ID, linear(all), all)
		}
	}
	for _, values := range [][]float64{{0.51, 1.03}, {0.995, 1}, {1}, {0.9, 1}, {-3, 17}, {0, 1e-3}} {
		check("linear", linear(values), append(values, linear(values).low))
	}
}
