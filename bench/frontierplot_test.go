package bench

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"
)

// Sizes of the plot in pixels, and the smallest rise of perplexity that it tells from less.
const (
	plotLeft, plotTop, plotWidth, plotHeight = 62.0, 14.0, 590.0, 460.0
	plotInset                                = 10.0      // between the frame and the outermost points
	plotEdge                                 = 0.01      // per cent
	ink                                      = "#7a828c" // grey that can be read on light and dark
)

// plotX is where a rise of perplexity stands on an axis that ends at high.
func plotX(rise, high float64) float64 {
	place := math.Log(max(rise, plotEdge)/plotEdge) / math.Log(high/plotEdge)
	return plotLeft + plotInset + place*(plotWidth-2*plotInset)
}

// drawn is the run whose points the plot joins by lines: the one that has most of them.
func (f *frontier) drawn() *frontierRun {
	runs := f.of(stationary)
	if len(runs) == 0 {
		return nil
	}
	return slices.MaxFunc(runs, func(a, b *frontierRun) int { return cmp.Compare(len(a.measured), len(b.measured)) })
}

// plot draws energy in prefill with stationary weights over perplexity: an SVG. The same points give the
// same bytes. Other runs than the drawn one have open markers.
func (f *frontier) plot() []byte {
	right, low, high := 0.0, math.Inf(1), math.Inf(-1)
	for _, r := range f.of(stationary) {
		for name, m := range r.measured {
			p := f.find(name)
			right = max(right, p.rise, p.high)
			low, high = min(low, change(m.Interval[0])), max(high, change(m.Interval[1]))
		}
	}
	for _, goal := range frontierTargets {
		right, low, high = max(right, goal.rise), min(low, goal.target), max(high, goal.target)
	}
	high = 2 * math.Ceil(high/2)
	right *= 1.1
	x := func(rise float64) string { return fmt.Sprintf("%.1f", plotX(rise, right)) }
	y := func(v float64) string {
		return fmt.Sprintf("%.1f", plotTop+plotInset+(high-v)/(high-low)*(plotHeight-2*plotInset))
	}
	var b bytes.Buffer
	print := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	print(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 668 602" width="668" height="602" font-family="system-ui, sans-serif" font-size="12" fill="%s">`, ink)
	print(`<title>Energy, measured, over the rise of perplexity</title>`)
	print(`<rect x="%v" y="%v" width="%v" height="%v" fill="none" stroke="%s"/>`, plotLeft, plotTop, plotWidth, plotHeight, ink)
	for v := 2 * math.Floor(high/2); v >= low; v -= 2 {
		print(`<path d="M%v %sh%v" stroke="%s" stroke-width="0.5" stroke-opacity="0.5"/>`, plotLeft, y(v), plotWidth, ink)
		print(`<text x="%v" y="%s" dy="4" text-anchor="end">%s</text>`, plotLeft-6, y(v), strings.TrimPrefix(signed(v, 0), "+"))
	}
	for _, v := range []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50} {
		if v > right {
			break
		}
		label := fmt.Sprint(v)
		if v == plotEdge {
			label = "≤ " + label
		}
		print(`<path d="M%s %vv4" stroke="%s"/>`, x(v), plotTop+plotHeight, ink)
		print(`<text x="%s" y="%v" text-anchor="middle">%s</text>`, x(v), plotTop+plotHeight+17, label)
	}
	print(`<text x="%v" y="%v" text-anchor="middle">rise of perplexity on evaluation tokens, %%</text>`, plotLeft+plotWidth/2, plotTop+plotHeight+36)
	print(`<text x="16" y="%[1]v" text-anchor="middle" transform="rotate(-90 16 %[1]v)">energy, measured change in %%</text>`, plotTop+plotHeight/2)

	const legendTop, legendLeft, legendColumn = plotTop + plotHeight + 62, 20.0, 205
	legend := 0
	entry := func(name, drawn string) {
		left, top := legendLeft+float64(legend%3*legendColumn), float64(legendTop+legend/3*20)
		print(`<g transform="translate(%v %v)">%s<text x="38" y="4">%s</text></g>`, left, top, drawn, name)
		legend++
	}
	drawn := f.drawn()
	for _, s := range strategies {
		var path, bars, filled, open strings.Builder
		for _, r := range f.of(stationary) {
			for _, p := range f.points {
				m, ok := r.measured[p.Name]
				if p.strategy != s.name || !ok {
					continue
				}
				energy, markers := change(m.RelativeEnergy), &open
				if r == drawn {
					markers = &filled
					fmt.Fprintf(&path, "%c%s %s", "ML"[min(path.Len(), 1)], x(p.rise), y(energy))
				}
				fmt.Fprintf(&bars, "M%s %sV%sM%s %sH%s", x(p.rise), y(change(m.Interval[0])), y(change(m.Interval[1])), x(p.low), y(energy), x(p.high))
				fmt.Fprintf(markers, `<path d="M%s %s%s"><title>%s, run %d: perplexity %s %%, energy %s</title></path>`,
					x(p.rise), y(energy), s.marker, p.Name, r.number, signed(p.rise, 3), energyCell(m))
			}
		}
		if bars.Len() == 0 {
			continue
		}
		stroke := fmt.Sprintf(`fill="none" stroke="%s" stroke-width="1.5" stroke-dasharray="%s"`, s.colour, cmp.Or(s.dashes, "none"))
		print(`<path d="%s" stroke="%s" stroke-opacity="0.35"/>`, bars.String(), s.colour)
		print(`<path d="%s" %s/>`, path.String(), stroke)
		print(`<g fill="%s">%s</g>`, s.colour, filled.String())
		print(`<g fill="none" stroke="%s" stroke-width="1.2">%s</g>`, s.colour, open.String())
		entry(s.label, fmt.Sprintf(`<path d="M0 0h30" %s/><path d="M15 0%s" fill="%s"/>`, stroke, s.marker, s.colour))
	}
	if len(f.of(stationary)) > 1 {
		entry("open: other runs", fmt.Sprintf(`<path d="M15 0%s" fill="none" stroke="%s" stroke-width="1.2"/>`, strategies[0].marker, ink))
	}
	const cross = `m-5 -5l10 10m0 -10l-10 10`
	for _, goal := range frontierTargets {
		if goal.workload == stationary {
			print(`<path class="target" d="M%s %s%s" stroke="%s" stroke-width="2"><title>target</title></path>`, x(goal.rise), y(goal.target), cross, ink)
		}
	}
	entry("target", fmt.Sprintf(`<path d="M15 0%s" stroke="%s" stroke-width="2"/>`, cross, ink))
	print("</svg>")
	return b.Bytes()
}

// TestFrontierPlot: the plot is well-formed, has every reading of prefill and target once, and its axis is
// logarithmic from the edge on.
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
	want := map[string]int{"target": 3, "Energy": 1}
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
	edge := plotX(plotEdge, 2)
	if edge <= plotLeft || plotX(-1, 2) != edge || plotX(0.001, 2) != edge {
		t.Errorf("points at or below %v %% stand at %v and %v", plotEdge, plotX(-1, 2), edge)
	}
	if one, ten := plotX(0.1, 2)-plotX(0.02, 2), plotX(1, 2)-plotX(0.2, 2); math.Abs(one-ten) > 1e-9 || one <= 0 {
		t.Errorf("five times as much is %v and %v pixels", one, ten)
	}
	if plotX(2, 2) >= plotLeft+plotWidth {
		t.Error("the right end lies outside the frame")
	}
}
