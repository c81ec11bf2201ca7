package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/lowtoggle/lowtoggle/internal/printable"
)

// canvas is SVG text.
type canvas struct{ bytes.Buffer }

func (c *canvas) printf(format string, args ...any) { fmt.Fprintf(c, format, args...) }

// px formats a coordinate to a tenth of a pixel.
func px(v float64) string {
	text := fmt.Sprintf("%.1f", v)
	if text == "-0.0" {
		return "0.0"
	}
	return text
}

// escape returns text for SVG, with visible escapes for invisible characters.
func escape(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(printable.Quote(text))) // writing to a buffer cannot fail
	return b.String()
}

func (c *canvas) text(x, y float64, anchor, more, text string) {
	c.printf(`<text x="%s" y="%s" text-anchor="%s"%s>%s</text>`+"\n", px(x), px(y), anchor, more, escape(text))
}

// widthOf estimates the width of a text in pixels. Fonts differ.
func widthOf(text string) float64 { return 0.6 * fontSize * float64(utf8.RuneCountInString(text)) }

// finite reports whether v is small enough for computing a scale.
func finite(v float64) bool { return math.Abs(v) < 1e300 }
