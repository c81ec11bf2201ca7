package chart

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"testing"

	"pgregory.net/rapid"
)

func decoded(t interface{ Fatal(...any) }, c Chart) image.Image {
	data, err := c.PNG()
	if err != nil {
		t.Fatal(err)
	}
	im, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// has counts the pixels of about a style's colour within a rectangle of the chart.
func has(im image.Image, s Style, r image.Rectangle) (n int) {
	want, _ := paint(s.colour(), "")
	w := want.(color.NRGBA)
	for y := r.Min.Y * pngScale; y < r.Max.Y*pngScale; y++ {
		for x := r.Min.X * pngScale; x < r.Max.X*pngScale; x++ {
			c := color.NRGBAModel.Convert(im.At(x, y)).(color.NRGBA)
			if diff := func(a, b uint8) int { return max(int(a)-int(b), int(b)-int(a)) }; diff(c.R, w.R)+diff(c.G, w.G)+diff(c.B, w.B) < 24 {
				n++
			}
		}
	}
	return n
}

// TestPNG: bars have their colour and length, lines are where they should be, and text darkens the paper.
func TestPNG(t *testing.T) {
	im := decoded(t, Chart{Width: 420, Panels: []Panel{{PartNames: []string{"a"}, Bars: []Bar{{Name: "x", Parts: []float64{50}}, {Name: "y", Parts: []float64{100}}}}}})
	first, second := image.Rect(64, 40, 420, 56), image.Rect(64, 60, 420, 76)
	if a, b := has(im, Style{}, first), has(im, Style{}, second); a == 0 || b < 2*a-200 || b > 2*a+200 {
		t.Errorf("bars of 50 and 100 have %d and %d pixels", a, b)
	}
	if n := has(im, Style{}, image.Rect(0, 0, 60, 120)); n > 0 {
		t.Errorf("%d pixels of bars among the names", n)
	}
	dark := 0
	for y := 30 * pngScale; y < 80*pngScale; y++ {
		for x := range 60 * pngScale {
			if c := color.GrayModel.Convert(im.At(x, y)).(color.Gray); c.Y < 200 {
				dark++
			}
		}
	}
	if dark < 20 {
		t.Errorf("the names have %d dark pixels", dark)
	}
	if c := color.GrayModel.Convert(im.At(1, 1)).(color.Gray); c.Y != 255 {
		t.Errorf("the paper has brightness %d", c.Y)
	}
}

// TestPNGLine: a solid line covers more than a dashed one, and markers are drawn.
func TestPNGLine(t *testing.T) {
	line := func(s Style) int {
		im := decoded(t, Chart{Legend: []Group{}, Panels: []Panel{{Lines: []Line{{X: []float64{0, 1, 2}, Y: []float64{0, 1, 0}, Style: s}}}}})
		return has(im, s, image.Rect(0, 0, usualWidth, 240))
	}
	solid, dashed := line(Style{Colour: 2}), line(Style{Colour: 2, Dashes: 1})
	marked := line(Style{Colour: 2, Marker: 1})
	if solid == 0 || dashed*10 > solid*8 || dashed*3 < solid || marked <= solid {
		t.Errorf("%d pixels solid, %d dashed, %d with markers", solid, dashed, marked)
	}
}

// TestPNGAny: every chart can be drawn, with the size of its SVG.
func TestPNGAny(t *testing.T) {
	chart := rapid.Custom(func(t *rapid.T) Chart {
		n := rapid.IntRange(0, 5).Draw(t, "n")
		list := func(name string) []float64 { return rapid.SliceOfN(rapid.Float64(), n, n).Draw(t, name) }
		return Chart{Title: rapid.String().Draw(t, "title"), Width: 420, Panels: []Panel{
			{Title: "lines", Y: Axis{Label: "y"}, Lines: []Line{{Name: rapid.String().Draw(t, "name"), X: list("x"), Y: list("y"), Style: Style{Marker: rapid.IntRange(0, 5).Draw(t, "marker"), Dashes: 1}}}},
			{PartNames: []string{"a"}, Bars: []Bar{{Name: "bar", Parts: []float64{1}, Interval: []float64{0.5, 2}, Label: "label"}}},
		}}
	})
	for seed := range 12 {
		if width := decoded(t, chart.Example(seed)).Bounds().Dx(); width != pngScale*420 {
			t.Fatalf("%d pixels wide", width)
		}
	}
}
