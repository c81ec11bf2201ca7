package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"maps"
	"math"
	"strconv"
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// pngScale is the number of PNG pixels per pixel of the chart.
const pngScale = 2

// PNG draws the chart on white, at twice the size of [Chart.SVG], in the Go font.
func (c Chart) PNG() ([]byte, error) {
	r := raster{}
	var err error
	if r.regular, err = face(goregular.TTF); err == nil {
		r.bold, err = face(gobold.TTF)
	}
	if err == nil {
		err = r.svg(c.SVG())
	}
	var b bytes.Buffer
	if err == nil {
		err = png.Encode(&b, r.image)
	}
	if err != nil {
		return nil, fmt.Errorf("chart: PNG: %w", err)
	}
	return b.Bytes(), nil
}

func face(ttf []byte) (font.Face, error) {
	f, err := opentype.Parse(ttf)
	if err != nil {
		return nil, err
	}
	return opentype.NewFace(f, &opentype.FaceOptions{Size: fontSize * pngScale, DPI: 72, Hinting: font.HintingNone})
}

// raster draws the SVG of this package. It supports only the elements, attributes and path commands that the package
// uses.
type raster struct {
	image         *image.RGBA
	regular, bold font.Face
}

// svg draws an SVG document.
func (r *raster) svg(text []byte) error {
	d := xml.NewDecoder(bytes.NewReader(text))
	stack := []map[string]string{{"stroke": "none", "stroke-width": "1"}}
	var names []string
	var content strings.Builder // content of a text element
	for {
		token, err := d.Token()
		switch {
		case err == io.EOF && r.image == nil:
			return fmt.Errorf("no image")
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			style := maps.Clone(stack[len(stack)-1])
			for _, a := range t.Attr {
				style[a.Name.Local] = a.Value
			}
			stack, names = append(stack, style), append(names, t.Name.Local)
			content.Reset()
			if err := r.element(t.Name.Local, style); err != nil {
				return err
			}
		case xml.CharData:
			if len(names) > 0 && names[len(names)-1] == "text" {
				content.Write(t)
			}
		case xml.EndElement:
			if t.Name.Local == "text" {
				r.text(content.String(), stack[len(stack)-1])
			}
			stack, names = stack[:len(stack)-1], names[:len(names)-1]
		}
	}
}

func (r *raster) element(name string, style map[string]string) error {
	switch name {
	case "svg":
		r.image = image.NewRGBA(image.Rect(0, 0, int(number(style["width"]))*pngScale, int(number(style["height"]))*pngScale))
		draw.Draw(r.image, r.image.Bounds(), image.White, image.Point{}, draw.Src)
	case "rect":
		x, y, w, h := number(style["x"]), number(style["y"]), number(style["width"]), number(style["height"])
		r.shape([]subpath{{points: []point{{x, y}, {x + w, y}, {x + w, y + h}, {x, y + h}}, closed: true}}, style)
	case "path":
		shape, err := parsePath(style["d"])
		if err != nil {
			return err
		}
		r.shape(shape, style)
	}
	return nil
}

// shape fills and strokes a shape.
func (r *raster) shape(shape []subpath, style map[string]string) {
	if c, ok := paint(style["fill"], style["fill-opacity"]); ok {
		var polygons [][]point
		for _, s := range shape {
			polygons = append(polygons, s.points)
		}
		r.fill(polygons, c)
	}
	if c, ok := paint(style["stroke"], style["stroke-opacity"]); ok {
		var quads [][]point
		half := number(style["stroke-width"]) / 2
		for _, s := range shape {
			for _, line := range s.segments(style["stroke-dasharray"]) {
				quads = append(quads, line.thick(half))
			}
		}
		r.fill(quads, c)
	}
}

// fill fills polygons. Overlapping polygons must have the same orientation.
func (r *raster) fill(polygons [][]point, c color.Color) {
	low, high := point{math.Inf(1), math.Inf(1)}, point{math.Inf(-1), math.Inf(-1)}
	for _, p := range polygons {
		for _, q := range p {
			low, high = point{min(low.x, q.x), min(low.y, q.y)}, point{max(high.x, q.x), max(high.y, q.y)}
		}
	}
	box := image.Rect(int(math.Floor(low.x*pngScale)), int(math.Floor(low.y*pngScale)), int(math.Ceil(high.x*pngScale))+1, int(math.Ceil(high.y*pngScale))+1)
	if box = box.Intersect(r.image.Bounds()); box.Empty() {
		return
	}
	z := vector.NewRasterizer(box.Dx(), box.Dy())
	at := func(p point) (x, y float32) {
		return float32(p.x*pngScale) - float32(box.Min.X), float32(p.y*pngScale) - float32(box.Min.Y)
	}
	for _, p := range polygons {
		if len(p) < 2 {
			continue
		}
		z.MoveTo(at(p[0]))
		for _, q := range p[1:] {
			z.LineTo(at(q))
		}
		z.ClosePath()
	}
	z.Draw(r.image, box, image.NewUniform(c), image.Point{})
}

// text writes a text; it may be rotated by a quarter turn to the left.
func (r *raster) text(text string, style map[string]string) {
	f := r.regular
	if style["font-weight"] == "bold" {
		f = r.bold
	}
	c, _ := paint(style["fill"], "")
	wide := font.MeasureString(f, text)
	shift := map[string]fixed.Int26_6{"middle": wide / 2, "end": wide}[style["text-anchor"]]
	x, y := number(style["x"])*pngScale, number(style["y"])*pngScale
	if !strings.HasPrefix(style["transform"], "rotate(-90 ") {
		d := font.Drawer{Dst: r.image, Src: image.NewUniform(c), Face: f, Dot: fixed.Point26_6{X: fixed.Int26_6(64*x) - shift, Y: fixed.Int26_6(64 * y)}}
		d.DrawString(text)
		return
	}
	up, down := f.Metrics().Ascent.Ceil(), f.Metrics().Descent.Ceil()
	flat := image.NewRGBA(image.Rect(0, 0, wide.Ceil(), up+down))
	d := font.Drawer{Dst: flat, Src: image.NewUniform(c), Face: f, Dot: fixed.P(0, up)}
	d.DrawString(text)
	turned := image.NewRGBA(image.Rect(0, 0, flat.Rect.Dy(), flat.Rect.Dx()))
	for i := range flat.Rect.Dx() {
		for j := range flat.Rect.Dy() {
			turned.Set(j, flat.Rect.Dx()-1-i, flat.At(i, j))
		}
	}
	place := image.Pt(int(x)-up, int(y)-(wide-shift).Ceil())
	draw.Draw(r.image, turned.Rect.Add(place), turned, image.Point{}, draw.Over)
}

// number parses a number; 0 if there is none.
func number(text string) float64 {
	v, _ := strconv.ParseFloat(text, 64)
	return v
}

// paint returns a colour of the form #rrggbb with an opacity. ok is false for none.
func paint(text, opacity string) (color.Color, bool) {
	v, err := strconv.ParseUint(strings.TrimPrefix(text, "#"), 16, 32)
	if err != nil {
		return nil, false
	}
	alpha := 1.0
	if opacity != "" {
		alpha = number(opacity)
	}
	return color.NRGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), uint8(255*alpha + 0.5)}, true
}
