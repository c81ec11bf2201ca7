package bench

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	"github.com/lowtoggle/lowtoggle/internal/chart"
)

// leastRise is the smallest rise of perplexity on the plot's axis, in per cent.
const leastRise = 0.01

// plotted returns the rise at which the plot shows a point.
func plotted(rise float64) float64 { return max(rise, leastRise) }

// drawn returns the run whose points the plot joins by lines: the one with most points.
func (f *frontier) drawn() *frontierRun {
	runs := f.of(stationary)
	if len(runs) == 0 {
		return nil
	}
	return slices.MaxFunc(runs, func(a, b *frontierRun) int { return cmp.Compare(len(a.measured), len(b.measured)) })
}

// plot draws energy in prefill with stationary weights over perplexity: an SVG. The same points give the
// same bytes. Other runs than the drawn one have hollow markers.
func (f *frontier) plot() []byte {
	panel := chart.Panel{
		X:      chart.Axis{Label: fmt.Sprintf("rise of perplexity on evaluation tokens, %% (at most %v: drawn there)", leastRise), Log: 10},
		Y:      chart.Axis{Label: "energy, measured change in %", With: []float64{0}},
		Height: 480,
	}
	var legend []chart.Group
	entry := func(e chart.Entry) { legend = append(legend, chart.Group{Entries: []chart.Entry{e}}) }
	drawn := f.drawn()
	for _, s := range strategies {
		points := 0
		for _, r := range f.of(stationary) {
			l := chart.Line{Style: s.style, Whiskers: true, Scattered: r != drawn, Low: []float64{}, XLow: []float64{}}
			l.Hollow = r != drawn
			for _, p := range f.points {
				m, ok := r.measured[p.Name]
				if p.strategy != s.name || !ok {
					continue
				}
				l.X, l.XLow, l.XHigh = append(l.X, plotted(p.rise)), append(l.XLow, plotted(p.low)), append(l.XHigh, plotted(p.high))
				l.Y = append(l.Y, change(m.RelativeEnergy))
				l.Low, l.High = append(l.Low, change(m.Interval[0])), append(l.High, change(m.Interval[1]))
				l.Titles = append(l.Titles, fmt.Sprintf("%s, run %d: perplexity %s %%, energy %s", p.Name, r.number, signed(p.rise, 3), energyCell(m)))
			}
			if points += len(l.X); len(l.X) > 0 {
				panel.Lines = append(panel.Lines, l)
			}
		}
		if points > 0 {
			entry(chart.Entry{Name: s.label, Style: s.style})
		}
	}
	if len(f.of(stationary)) > 1 {
		other := strategies[0].style
		other.Hollow = true
		entry(chart.Entry{Name: "hollow: other runs", Style: other, Scattered: true})
	}
	return chart.Chart{Title: "Energy, measured, over the rise of perplexity", Panels: []chart.Panel{panel}, Legend: legend}.SVG()
}

// TestFrontierPlot checks that the plot is well-formed and has every reading of prefill once.
func TestFrontierPlot(t *testing.T) {
	files := inventedFrontier()
	files["frontier-stationary-3.json"] = files["frontier-stationary-2.json"] // the points of grid
	f, err := loadFrontier(writeFrontier(t, files))
	if err != nil {
		t.Fatal(err)
	}
	svg := f.plot()
	titles := map[string]int{}
	inTitle := false
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			inTitle = e.Name.Local == "title"
		case xml.CharData:
			if name, _, _ := strings.Cut(string(e), ","); inTitle {
				titles[name]++
			}
		case xml.EndElement:
			inTitle = false
		}
	}
	want := map[string]int{"Energy": 1}
	for _, p := range f.points {
		if p.Workload != decode {
			want[p.Name] = 1
		}
		if p.strategy == "grid" {
			want[p.Name] = 2
		}
	}
	if d := diff.Diff(want, titles); d != "" {
		t.Errorf("titles in the plot: %s", d)
	}
	if bytes.Contains(svg, []byte("NaN")) || bytes.Contains(svg, []byte("Inf")) {
		t.Error("something in the plot is not a number")
	}
	if plotted(-1) != leastRise || plotted(0.001) != leastRise || plotted(0.02) != 0.02 {
		t.Errorf("points at or below %v %% stand at %v and %v, 0.02 %% at %v", leastRise, plotted(-1), plotted(0.001), plotted(0.02))
	}
}
