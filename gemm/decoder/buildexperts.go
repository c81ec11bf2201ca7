package decoder

// experts returns the routed experts of a layer.
func (b *builder) experts(layer int, data *expertsData) *Experts {
	e := &Experts{Router: b.linear(data.router, layer), Routing: b.routing(data)}
	if data.correction != "" {
		if c := b.claim(data.correction, layer, 1); c != nil {
			e.Correction = c.Name
		}
	}
	n := e.Router.Outputs
	for i := range n {
		out := b.expert(data.each.out, layer, i, n)
		var in []Linear
		for _, kind := range data.each.in {
			in = append(in, b.expert(kind, layer, i, n))
		}
		e.Each = append(e.Each, b.newFFN(in, data.each.gated, out))
	}
	b.grouped(e)
	return e
}

// expert returns a layer of expert i of n.
func (b *builder) expert(kind string, layer, i, n int) Linear {
	all := b.claims[module{kind, layer}]
	if len(all) != n {
		b.failf("the checkpoint has %d × %s in layer %d, but the layer's router has %d experts: use a complete checkpoint", len(all), kind, layer, n)
		return Linear{}
	}
	l := newLinear(all[i])
	l.Routed = true
	return l
}

func (b *builder) routing(data *expertsData) Routing {
	c := b.config
	r := Routing{Used: c.count(data.used), Sigmoid: data.sigmoid, Normalize: c.is(data.normalize), Scale: c.factor(data.scale), Best: data.best}
	if data.groups.name == "" || data.grouped != "" && get(c, data.method.name, data.method.value.(string)) != data.grouped {
		return r
	}
	r.Groups, r.GroupsUsed = c.count(data.groups), c.count(data.groupsUsed)
	return r
}

// grouped records an error unless the groups fit the number of experts.
func (b *builder) grouped(e *Experts) {
	n, r, from := e.Router.Outputs, e.Routing, e.Router.Outputs
	if r.Groups > 0 {
		if least := max(1, r.Best); n%r.Groups != 0 || n/r.Groups < least {
			b.config.failf("%s is %d, but must divide %d, the number of experts, into groups of at least %d", b.family.ffn.experts.groups.name, r.Groups, n, least)
			return
		}
		if r.GroupsUsed < 1 || r.GroupsUsed > r.Groups {
			b.config.failf("%s is %d, but must be from 1 to %d, the number of groups", b.family.ffn.experts.groupsUsed.name, r.GroupsUsed, r.Groups)
			return
		}
		from = n / r.Groups * r.GroupsUsed
	}
	if r.Used < 1 || r.Used > from {
		b.config.failf("%s is %d, but must be from 1 to %d, the number of experts to choose from", b.family.ffn.experts.used.name, r.Used, from)
	}
}
