package chart

import (
	"fmt"
	"math"
	"strings"
)

// point is a place in a chart, in pixels.
type point struct{ x, y float64 }

// subpath is a sequence of connected points.
type subpath struct {
	points []point
	closed bool
}

// segment is a straight line.
type segment struct{ from, to point }

// parsePath parses the data of a path with the commands of this package: M, L, H, V, z, and a for half a circle.
func parsePath(data string) (list []subpath, err error) {
	var at, start point
	add := func(p point) {
		at = p
		last := &list[len(list)-1]
		if last.closed { // after z, a path continues at the start of the last subpath
			list = append(list, subpath{points: []point{start}})
			last = &list[len(list)-1]
		}
		last.points = append(last.points, p)
	}
	for _, c := range commands(data) {
		lower := c.name | 0x20
		from := point{}
		if c.name == lower {
			from = at
		}
		size := map[byte]int{'m': 2, 'l': 2, 'h': 1, 'v': 1, 'a': 7, 'z': 0}
		n, known := size[lower]
		if !known || n > 0 && (len(c.values) == 0 || len(c.values)%n != 0) || lower != 'm' && len(list) == 0 {
			return nil, fmt.Errorf("path %.40q: command %c is not supported with %d values", data, c.name, len(c.values))
		}
		if lower == 'z' {
			list[len(list)-1].closed, at = true, start
		}
		for v := c.values; len(v) > 0; v = v[n:] {
			if c.name == lower {
				from = at
			}
			switch lower {
			case 'm':
				at = point{from.x + v[0], from.y + v[1]}
				start, list = at, append(list, subpath{points: []point{at}})
			case 'l':
				add(point{from.x + v[0], from.y + v[1]})
			case 'h':
				add(point{from.x + v[0], at.y})
			case 'v':
				add(point{at.x, from.y + v[0]})
			case 'a':
				end := point{from.x + v[5], from.y + v[6]}
				for _, p := range halfCircle(at, end, v[4] == 0) {
					add(p)
				}
			}
		}
	}
	return list, nil
}

// halfCircle returns points on the half circle from one point to another.
func halfCircle(from, to point, left bool) (list []point) {
	const steps = 12
	turn := math.Pi / steps
	if left {
		turn = -turn
	}
	cx, cy := (from.x+to.x)/2, (from.y+to.y)/2
	for i := 1; i <= steps; i++ {
		sin, cos := math.Sincos(turn * float64(i))
		dx, dy := from.x-cx, from.y-cy
		list = append(list, point{cx + cos*dx - sin*dy, cy + sin*dx + cos*dy})
	}
	return list
}

type command struct {
	name   byte
	values []float64
}

// commands splits the data of a path into commands.
func commands(data string) (list []command) {
	for len(data) > 0 {
		c := data[0]
		switch {
		case c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z':
			list, data = append(list, command{name: c}), data[1:]
		case strings.IndexByte("-.0123456789", c) >= 0 && len(list) > 0:
			n := 1
			for n < len(data) && strings.IndexByte(".0123456789", data[n]) >= 0 {
				n++
			}
			last := &list[len(list)-1]
			last.values, data = append(last.values, number(data[:n])), data[n:]
		default:
			data = data[1:]
		}
	}
	return list
}

// segments returns the straight lines of a path, cut by a pattern of dashes such as "6 3".
func (s subpath) segments(dashes string) (list []segment) {
	points := s.points
	if s.closed {
		points = append(points[:len(points):len(points)], points[0])
	}
	var pattern []float64
	for _, f := range strings.Fields(dashes) {
		pattern = append(pattern, max(0.1, number(f)))
	}
	i, left := 0, math.Inf(1) // place in the pattern of dashes
	if len(pattern) > 0 {
		left = pattern[0]
	}
	for k := 1; k < len(points); k++ {
		from, to := points[k-1], points[k]
		for {
			length := math.Hypot(to.x-from.x, to.y-from.y)
			if length <= left {
				if left -= length; i%2 == 0 {
					list = append(list, segment{from, to})
				}
				break
			}
			cut := point{from.x + (to.x-from.x)*left/length, from.y + (to.y-from.y)*left/length}
			if i%2 == 0 {
				list = append(list, segment{from, cut})
			}
			i++
			from, left = cut, pattern[i%len(pattern)]
		}
	}
	return list
}

// thick returns a segment as a rectangle with ends that cover corners.
func (s segment) thick(half float64) []point {
	dx, dy := s.to.x-s.from.x, s.to.y-s.from.y
	length := math.Hypot(dx, dy)
	if length == 0 {
		return nil
	}
	dx, dy = dx/length*half, dy/length*half
	corner := min(1, length) * 0.5
	ax, ay := s.from.x-dx*corner, s.from.y-dy*corner
	bx, by := s.to.x+dx*corner, s.to.y+dy*corner
	return []point{{ax - dy, ay + dx}, {bx - dy, by + dx}, {bx + dy, by - dx}, {ax + dy, ay - dx}}
}
