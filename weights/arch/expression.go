package arch

import "fmt"

// node is an axis expression, or a part of one.
type node struct {
	op     byte    // '*' product, outer first; '|' concatenation; 'a' leaf
	parts  []*node // of a product or concatenation
	text   string  // of a leaf: a name or a number
	column int
	sense  int // of a leaf: +1, -1, or 0 for permutations only
	slot   int // of a leaf: its index; -1 for a plain length
	length int // set once a config is known; for a number, from the start
}

// parseAxis reads an axis expression into its riders, which "&" separates.
func parseAxis(s string) ([]*node, error) {
	toks, err := lex(s, "+-|&()")
	if err != nil {
		return nil, err
	}
	p := &parser{toks: toks}
	var riders []*node
	for {
		n, err := p.concatenation()
		if err != nil {
			return nil, err
		}
		riders = append(riders, n)
		if p.peek() == 0 {
			return riders, nil
		}
		if !p.accept('&') {
			return nil, p.unexpected(`a factor, "|" or "&"`)
		}
	}
}

func (p *parser) concatenation() (*node, error) {
	n, err := p.product()
	if err != nil || p.peek() != '|' {
		return n, err
	}
	all := &node{op: '|', parts: []*node{n}, column: n.column}
	for p.accept('|') {
		if n, err = p.product(); err != nil {
			return nil, err
		}
		all.parts = append(all.parts, n)
	}
	return all, nil
}

func (p *parser) product() (*node, error) {
	n, err := p.factor()
	if err != nil {
		return nil, err
	}
	all := &node{op: '*', parts: []*node{n}, column: n.column}
	for {
		switch p.peek() {
		case 'a', '0', '+', '-', '(':
		default:
			if len(all.parts) == 1 {
				return n, nil
			}
			return all, nil
		}
		if n, err = p.factor(); err != nil {
			return nil, err
		}
		all.parts = append(all.parts, n)
	}
}

func (p *parser) factor() (*node, error) {
	if p.accept('(') {
		return enclosed(p, p.concatenation)
	}
	column, sense := p.toks[0].column, 0
	if p.accept('+') {
		sense = 1
	} else if p.accept('-') {
		sense = -1
	}
	switch t := p.toks[0]; {
	case t.kind == 'a':
		p.next()
		return &node{op: 'a', text: t.text, column: column, sense: sense, slot: -1}, nil
	case t.kind == '0' && sense == 0:
		p.next()
		n, err := parseLength(t)
		if err == nil && n == 0 {
			err = fmt.Errorf("column %d: a length must be at least 1", t.column)
		}
		return &node{op: 'a', text: t.text, column: column, slot: -1, length: n}, err
	}
	if sense != 0 {
		return nil, p.unexpected("an index")
	}
	return nil, p.unexpected("a factor")
}

// leaves calls visit for every leaf, left to right.
func (n *node) leaves(visit func(*node)) {
	if n.op == 'a' {
		visit(n)
	}
	for _, p := range n.parts {
		p.leaves(visit)
	}
}

// withLengths returns a copy of the expression with every length filled in. Parts of a
// concatenation that have no positions in this model are left out.
func (n *node) withLengths(m *model) (*node, error) {
	c := *n
	switch {
	case n.op != 'a':
		return n.sum(m)
	case n.slot >= 0:
		c.length = m.size[n.slot]
	case n.length == 0:
		d, ok := m.dims[n.text]
		if !ok {
			return nil, fmt.Errorf("%s has no value in this model", n.text)
		}
		c.length = d.value
	}
	return &c, nil
}

// sum is withLengths for a product or a concatenation.
func (n *node) sum(m *model) (*node, error) {
	c := *n
	c.parts = nil
	if n.op == '*' {
		c.length = 1
	}
	for _, p := range n.parts {
		q, err := p.withLengths(m)
		if err != nil {
			return nil, err
		}
		if n.op == '*' {
			c.length *= q.length
		} else {
			c.length += q.length
		}
		if c.length > maxDim {
			return nil, fmt.Errorf("has more than %d positions", maxDim)
		}
		if n.op == '*' || q.length > 0 {
			c.parts = append(c.parts, q)
		}
	}
	if n.op == '|' && len(c.parts) == 1 {
		return c.parts[0], nil
	}
	return &c, nil
}

// String returns the expression as a family file writes it.
func (n *node) String() string {
	if n.op == 'a' {
		return map[int]string{-1: "-", 1: "+"}[n.sense] + n.text
	}
	s := ""
	for i, p := range n.parts {
		if i > 0 {
			s += map[byte]string{'*': " ", '|': " | "}[n.op]
		}
		if n.op == '*' && p.op == '|' {
			s += "(" + p.String() + ")"
		} else {
			s += p.String()
		}
	}
	return s
}

// describe returns riders as a family file writes them.
func describe(riders []*node) string {
	s := riders[0].String()
	for _, r := range riders[1:] {
		s += " & " + r.String()
	}
	return s
}
