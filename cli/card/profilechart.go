package card

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/outfile"
	"github.com/lowtoggle/lowtoggle/cli/page"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/profile"
	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
	"github.com/lowtoggle/lowtoggle/internal/chart"
	"github.com/lowtoggle/lowtoggle/internal/report"
)

// picture draws power on a logarithmic time axis, power over the whole run, and the clock.
func (r profileReport) picture() chart.Chart {
	watts, after := chart.Axis{Label: "power, W", With: []float64{0}}, chart.Axis{Label: "time since the start of the work, s"}
	early := chart.Panel{Title: r.title(), X: chart.Axis{Label: "time since the start of the work, ms", Log: 10}, Y: watts}
	whole := chart.Panel{Title: "the whole run", X: after, Y: watts}
	clock := chart.Panel{Title: "clock", X: after, Y: chart.Axis{Label: "clock, MHz", With: []float64{0}}}
	for i, p := range r.Profiles {
		if p.Trace == nil {
			continue
		}
		name, style := r.nameOf(p), chart.Style{Colour: i}
		line := traceLine(p.Trace, name, style)
		whole.X.With = append(whole.X.With, line.X[0], line.X[len(line.X)-1])
		whole.Lines = append(whole.Lines, scaled(line, 1))
		early.Lines = append(early.Lines, working(scaled(line, 1000), 1000*p.Segments[0].End.Seconds()))
		if len(p.Counted) > 0 {
			early.Lines = append(early.Lines, countedLine(p, name, style))
		}
		clock.Lines = append(clock.Lines, clockLine(p, name, style))
		for _, m := range marksOf(p, len(r.Profiles) > 1) {
			whole.Marks = append(whole.Marks, m)
			if m.X *= 1000; m.X >= 1000*p.Trace.Step.Seconds()/2 { // earlier marks would lie far left of all lines
				early.Marks = append(early.Marks, m)
			}
		}
	}
	clock.X.With = whole.X.With // both panels show the same times
	return chart.Chart{Title: r.title(), Panels: []chart.Panel{early, whole, clock}}
}

// draw draws the picture or writes the report. Without a trace, an existing picture file does not change.
func (r profileReport) draw(c *cli.Context, path string) error {
	switch {
	case path != "" && outfile.KindOf(path, outfile.Pictures...) == outfile.HTML:
		return r.page(c).Write(c, path)
	case r.HasTrace():
		return outfile.WriteChart(c, path, r.picture())
	case path != "" && !c.Bool("json"):
		term.Remark(c.App.Writer, "picture", "not drawn, because there is no trace: "+path+" was not changed")
	}
	return nil
}

// page fills the report's page.
func (r profileReport) page(c *cli.Context) *page.Page {
	p, known := page.New(c, "Power over time", r.title()), knownHow(r.Simulated)
	for _, f := range r.Profiles {
		if s := f.Steady.SSP; s.Found {
			p.Figure("steady power, "+r.nameOf(f), decimal(s.Watts, 1)+" W", fmt.Sprintf("95 %%: %s … %s W", decimal(s.Low, 1), decimal(s.High, 1)), known)
			p.Figure("from the start to steady power", s.At.String(), "execution "+term.Count(s.Execution), known)
		}
	}
	s := p.Section("Power and clock")
	if r.HasTrace() {
		for _, one := range split(r.picture()) {
			s.Picture(one, "")
		}
	}
	r.print(s)
	p.Origin("power, clock and times", known, cardOrigin("", r.GPU, r.Card.ID())+", "+r.Date)
	for _, sig := range r.signatures {
		p.Origin("power by component", report.Predicted, sig.From)
	}
	return p
}

// split makes one narrow chart of each panel, for the width of a phone. Every chart's legend has all names. A panel
// with the chart's title, which the page already shows, is named after its time axis.
func split(c chart.Chart) (list []chart.Chart) {
	for _, p := range c.Panels {
		if p.Title == c.Title {
			p.Title = "from the start"
		}
		list = append(list, chart.Chart{Title: c.Title, Panels: []chart.Panel{p}, Width: report.Narrow})
	}
	return list
}

// traceLine draws a trace with a point in the middle of every cell. Times are in seconds.
func traceLine(c *stitch.Trace, name string, style chart.Style) chart.Line {
	l := chart.Line{Name: name, Style: style, Y: c.Watts, Low: c.Low, High: c.High}
	for i := range c.Watts {
		l.X = append(l.X, (c.Start + stitch.Seconds(i)*c.Step + c.Step/2).Seconds())
	}
	return l
}

// scaled returns a line with its times multiplied by a factor.
func scaled(l chart.Line, by float64) chart.Line {
	x := make([]float64, len(l.X))
	for i, v := range l.X {
		x[i] = v * by
	}
	l.X = x
	return l
}

// working returns the points of a line from the start to the end of the first segment.
func working(l chart.Line, end float64) chart.Line {
	from, to := 0, len(l.X)
	for from < to && l.X[from] <= 0 {
		from++
	}
	for to > from && l.X[to-1] > end {
		to--
	}
	l.X, l.Y = l.X[from:to], l.Y[from:to]
	if l.Low != nil {
		l.Low, l.High = l.Low[from:to], l.High[from:to]
	}
	return l
}

// countedLine draws power from the energy of bursts, as crosses over the milliseconds between the bursts' ends.
func countedLine(p profile.Profile, name string, style chart.Style) chart.Line {
	style.Marker = 5
	l := chart.Line{Name: name + ", from bursts", Style: style, Whiskers: true, Scattered: true}
	for i, c := range p.Counted {
		if i > 0 && i == len(p.Counted)-1 {
			break // the last entry spans all lengths of bursts
		}
		from, to := 1000*c.From.Seconds(), 1000*c.To.Seconds()
		l.X, l.XLow, l.XHigh = append(l.X, (from+to)/2), append(l.XLow, from), append(l.XHigh, to)
		l.Y, l.Low, l.High = append(l.Y, c.Watts), append(l.Low, c.Low), append(l.High, c.High)
	}
	return l
}

func clockLine(p profile.Profile, name string, style chart.Style) chart.Line {
	l := chart.Line{Name: name, Style: style}
	for _, s := range p.States {
		if s.SMClock != nil {
			l.X, l.Y = append(l.X, s.At.Seconds()), append(l.Y, *s.SMClock)
		}
	}
	return l
}

// marksOf returns the marks of SSE, SSP and the start of the second product.
func marksOf(p profile.Profile, named bool) (marks []chart.Mark) {
	name := ""
	if named {
		name = p.Segments[0].Name + ": "
	}
	for _, s := range []struct {
		label string
		point profile.SteadyPoint
	}{{"SSE", p.Steady.SSE}, {"SSP", p.Steady.SSP}} {
		if s.point.Found {
			marks = append(marks, chart.Mark{X: s.point.At.Seconds(), Label: name + s.label})
		}
	}
	for _, l := range p.Segments[1:] {
		marks = append(marks, chart.Mark{X: l.Begin.Seconds(), Label: name + "then " + l.Name})
	}
	return marks
}
