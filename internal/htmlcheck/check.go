// Package htmlcheck is for tests only. It checks that a report is well-formed, refers to no other file, and keeps to a subset of
// HTML5: a list of allowed elements and attributes.
package htmlcheck

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// children are the elements that an element may contain; "#" stands for text. Unlisted elements must be empty.
var children = map[string]string{
	"": "html", "html": "head body", "head": "meta title style", "title": "#", "style": "#",
	"body": "header main", "header": "h1 p", "main": "ul nav section", "nav": "ul", "section": "h2 " + flow,
	"h1": "#", "h2": "#", "p": "# " + phrase, "span": "#", "strong": "#", "code": "#", "pre": "code", "a": "#",
	"ul": "li", "li": "# " + phrase, "div": "table figure", "b": "#",
	"table": "thead tbody", "thead": "tr", "tbody": "tr", "tr": "th td", "th": "# br span", "td": "# br span",
	"figure": "svg figcaption", "figcaption": "#", "details": "summary " + flow, "summary": "#",
	"svg": "title g path rect text", "g": "title path rect text g", "path": "title", "text": "#", "rect": "title",
}

const (
	phrase = "a b span strong br code"
	flow   = "p ul div pre details"
)

// void elements have no end tag, but XML requires one.
var void = regexp.MustCompile(`<((?:meta|br)\b[^<>]*)>`)

// attributes are the allowed attributes of elements, besides class and id.
var attributes = map[string]string{
	"html": "lang", "meta": "charset name content http-equiv", "a": "href", "th": "scope", "div": "tabindex role aria-label", "nav": "aria-label",
	"svg":  "xmlns viewBox width height font-family font-size fill",
	"g":    drawing,
	"path": "d " + drawing, "rect": "x y width height " + drawing, "text": "x y text-anchor font-weight transform " + drawing,
}

const drawing = "fill stroke stroke-width stroke-opacity stroke-dasharray fill-opacity"

// outside finds references to other files in styles.
var outside = regexp.MustCompile(`(?i)url\s*\(|@import|@font-face|expression\s*\(`)

// Check returns the problems of a document; nil if there are none.
func Check(html []byte) (problems []string) {
	c := checker{ids: map[string]bool{}}
	html, found := bytes.CutPrefix(html, []byte("<!DOCTYPE html>\n"))
	if !found {
		c.add("the document does not begin with <!DOCTYPE html>")
	}
	d := xml.NewDecoder(bytes.NewReader(void.ReplaceAll(html, []byte("<$1/>"))))
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			c.add("%v", err)
			break
		}
		switch t := token.(type) {
		case xml.StartElement:
			c.start(t)
		case xml.EndElement:
			c.stack = c.stack[:len(c.stack)-1]
		case xml.CharData:
			c.text(string(t))
		default:
			c.add("%T is not allowed", t)
		}
	}
	for _, link := range c.links {
		if !c.ids[link] {
			c.add("the link to #%s leads nowhere", link)
		}
	}
	for name, n := range map[string]int{"title": c.titles, "h1": c.headings} {
		if n != 1 {
			c.add("%d elements %s", n, name)
		}
	}
	return c.problems
}

type checker struct {
	stack            []string
	ids              map[string]bool
	links            []string
	titles, headings int
	problems         []string
}

func (c *checker) add(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

func (c *checker) parent() string {
	if len(c.stack) == 0 {
		return ""
	}
	return c.stack[len(c.stack)-1]
}

func (c *checker) start(t xml.StartElement) {
	name, parent := t.Name.Local, c.parent()
	if !slices.Contains(strings.Fields(children[parent]), name) {
		c.add("<%s> in <%s>", name, parent)
	}
	seen := map[string]bool{}
	for _, a := range t.Attr {
		c.attribute(name, a.Name.Local, a.Value)
		if seen[a.Name.Local] {
			c.add("<%s> has %s twice", name, a.Name.Local)
		}
		seen[a.Name.Local] = true
	}
	switch {
	case name == "title" && parent == "head":
		c.titles++
	case name == "h1":
		c.headings++
	case name == "html" && !seen["lang"]:
		c.add("<html> has no attribute lang")
	}
	c.stack = append(c.stack, name)
}

func (c *checker) attribute(element, name, value string) {
	allowed := append(strings.Fields(attributes[element]), "class", "id")
	switch {
	case !slices.Contains(allowed, name):
		c.add("<%s %s>", element, name)
	case name == "id" && (value == "" || c.ids[value]):
		c.add("the id %q is empty or not unique", value)
	case name == "id":
		c.ids[value] = true
	case name == "href" && !strings.HasPrefix(value, "#"):
		c.add("the link to %q leads out of the document", value)
	case name == "href":
		c.links = append(c.links, value[1:])
	case name == "xmlns" && value != "http://www.w3.org/2000/svg":
		c.add("the namespace %q", value)
	}
}

func (c *checker) text(text string) {
	parent := c.parent()
	if strings.TrimSpace(text) != "" && !slices.Contains(strings.Fields(children[parent]), "#") {
		c.add("the text %.40q is not allowed in <%s>", strings.TrimSpace(text), parent)
	}
	if parent == "style" && outside.MatchString(text) {
		c.add("the style refers to another file")
	}
	for _, r := range text {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			c.add("the invisible character %U is not allowed in <%s>", r, parent)
		}
	}
}
