package chart

import "fmt"

// Style is the look of a line. Numbers beyond the last style start again from the first.
type Style struct {
	Colour int  // in the palette: purple, olive, blue, orange, teal, pink, green
	Dashes int  // 0 is a solid line, 1 to 3 are dashed
	Marker int  // 0: none; circle, square, triangle, diamond, cross
	Hollow bool // draw markers as outlines; a cross always is one
}

// ink is the colour of text, axes and grid: a grey that can be read on light and dark backgrounds.
const ink = "#7a828c"

var palette = []string{"#8a6fd1", "#8d8d3a", "#2f81d6", "#d2691e", "#1a9a8a", "#cf4f87", "#5f9e2f"}

var dashes = []string{"", "6 3", "2 3", "9 3 2 3"}

// markers are paths relative to the point.
var markers = []string{
	"m-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z", // circle
	"m-3 -3h6v6h-6z",                      // square
	"m0 -4l4 7h-8z",                       // triangle
	"m0 -4l4 4l-4 4l-4 -4z",               // diamond
	"m-5 -5l10 10m0 -10l-10 10",           // cross
}

const cross = 5

func (s Style) colour() string { return palette[s.Colour%len(palette)] }

// dashed returns the attribute of a dashed line; empty for a solid one.
func (s Style) dashed() string {
	pattern := dashes[s.Dashes%len(dashes)]
	if pattern == "" {
		return ""
	}
	return fmt.Sprintf(` stroke-dasharray="%s"`, pattern)
}

// marker returns the marker's path; empty for none.
func (s Style) marker() string {
	if s.Marker == 0 {
		return ""
	}
	return markers[(s.Marker-1)%len(markers)]
}

// filled returns the attributes of markers.
func (s Style) filled() string {
	if s.Hollow || s.Marker > 0 && (s.Marker-1)%len(markers)+1 == cross {
		return `fill="none" stroke-width="1.3"`
	}
	return `stroke="none"`
}
