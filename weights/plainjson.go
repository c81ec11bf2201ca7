package weights

import "strings"

// plainJSON reads JSON whose strings have only printable ASCII without escapes, and whose numbers are whole. All usual
// programs write headers and indices in this form. plainJSON is ten times as fast as [walker]. Its methods return false for
// all other JSON, valid or not. A walker must then read the JSON.
type plainJSON struct {
	js []byte
	at int
}

// next skips white space and returns the next byte; 0 at the end.
func (p *plainJSON) next() byte {
	for ; p.at < len(p.js); p.at++ {
		if c := p.js[p.at]; c > ' ' || strings.IndexByte(jsonSpace, c) < 0 {
			return c
		}
	}
	return 0
}

// take skips white space and the byte c.
func (p *plainJSON) take(c byte) bool {
	ok := p.next() == c
	if ok {
		p.at++
	}
	return ok
}

// text reads a string. The result is a part of js.
func (p *plainJSON) text() ([]byte, bool) {
	if !p.take('"') {
		return nil, false
	}
	for from := p.at; p.at < len(p.js); p.at++ {
		switch c := p.js[p.at]; {
		case c == '"':
			p.at++
			return p.js[from : p.at-1], true
		case c < ' ' || c > '~' || c == '\\':
			return nil, false
		}
	}
	return nil, false
}

// mostDigits is the largest number of digits that is read here: every number of 18 digits is below 2^62.
const mostDigits = 18

// integer reads a whole number.
func (p *plainJSON) integer() (n int64, ok bool) {
	p.next()
	from := p.at
	for ; p.at < len(p.js) && '0' <= p.js[p.at] && p.js[p.at] <= '9'; p.at++ {
		n = 10*n + int64(p.js[p.at]-'0')
		if p.at-from == mostDigits {
			return 0, false
		}
	}
	digits := p.at - from
	return n, digits == 1 || digits > 1 && p.js[from] != '0'
}

// list calls element before each element between open and shut.
func (p *plainJSON) list(open, shut byte, element func() bool) bool {
	if !p.take(open) {
		return false
	}
	if p.take(shut) {
		return true
	}
	for {
		if !element() {
			return false
		}
		if p.take(shut) {
			return true
		}
		if !p.take(',') {
			return false
		}
	}
}

// object calls member with each key, before the key's value. It does not notice keys that appear twice.
func (p *plainJSON) object(member func(key []byte) bool) bool {
	return p.list('{', '}', func() bool {
		key, ok := p.text()
		return ok && p.take(':') && member(key)
	})
}

// texts reads an object of strings.
func (p *plainJSON) texts() (map[string]string, bool) {
	m, members, last := map[string]string{}, 0, ""
	ok := p.object(func(key []byte) bool {
		v, ok := p.text()
		if string(v) != last { // neighbours in an index are often in the same shard
			last = string(v)
		}
		m[string(key)] = last
		members++
		return ok
	})
	return m, ok && len(m) == members
}

// end reports whether nothing but white space follows.
func (p *plainJSON) end() bool { return p.next() == 0 && p.at == len(p.js) }

// plainHeader is [walkHeader] for a header in the usual form; false for any other header.
func plainHeader(js []byte) (*header, bool) {
	p, h, metadata := &plainJSON{js: js}, &header{}, 0
	ok := p.object(func(key []byte) (ok bool) {
		if string(key) == metadataKey {
			metadata++
			h.metadata, ok = p.texts()
			return ok && metadata == 1
		}
		t, ok := p.tensor(string(key))
		h.tensors = append(h.tensors, t)
		return ok
	})
	return h, ok && p.end()
}

// tensor reads an entry of a header: each of its three members once, and no other.
func (p *plainJSON) tensor(name string) (t Info, ok bool) {
	t.Name = name
	var offsets []int64
	members := 0
	ok = p.object(func(key []byte) bool {
		members++
		switch string(key) {
		case "dtype":
			name, ok := p.text()
			d, err := ParseDType(string(name))
			again := t.DType != 0
			t.DType = d
			return ok && err == nil && !again
		case "shape":
			again := t.Shape != nil
			t.Shape = []int{}
			return !again && p.list('[', ']', func() bool {
				n, ok := p.integer()
				t.Shape = append(t.Shape, int(n))
				return ok
			})
		case "data_offsets":
			again := offsets != nil
			offsets = []int64{}
			return !again && p.list('[', ']', func() bool {
				n, ok := p.integer()
				offsets = append(offsets, n)
				return ok
			})
		}
		return false
	})
	if !ok || members != 3 || t.DType == 0 || t.Shape == nil || len(offsets) != 2 || offsets[1] < offsets[0] {
		return t, false
	}
	t.Begin, t.End = offsets[0], offsets[1]
	return t, true
}

// plainIndex returns the weight_map of an index in the usual form; false for any other index.
func plainIndex(js []byte) (weightMap map[string]string, ok bool) {
	p := &plainJSON{js: js}
	seen := map[string]bool{}
	ok = p.object(func(key []byte) (ok bool) {
		if seen[string(key)] {
			return false
		}
		seen[string(key)] = true
		if string(key) == "weight_map" {
			weightMap, ok = p.texts()
			return ok
		}
		return string(key) == "metadata" && p.object(func([]byte) bool {
			_, ok := p.integer()
			return ok
		})
	})
	return weightMap, ok && p.end()
}
