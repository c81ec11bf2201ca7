package arch

// markCached marks the indices whose scales may change a KV cache: keys, values, or latent vectors from which both are computed.
// A family file does not name these tensors, so the rules use the structure of the uses. The rules may mark too many indices,
// never too few: they also mark an encoder's heads and a latent vector of queries.
func (r *resolver) markCached(l *Layout) {
	for slot, instances := range r.space.made {
		inHead := slot >= len(r.model.family.loops) && len(r.model.family.inner(slot)) > 0
		for _, x := range instances {
			if x != nil && x.Scale {
				x.Cached = inHead || l.betweenOutputs(x) || l.ofLatent(x)
			}
		}
	}
}

// betweenOutputs reports whether the scales of an index cancel between outputs of linear layers alone, as those of queries
// and keys do: attention multiplies a query with a key.
func (l *Layout) betweenOutputs(x *Index) bool {
	for _, u := range x.Uses {
		c := l.Claims[u.Tensor]
		if u.Signed && c.Role != Bias && !(c.Role == Linear && u.Axis == c.OutAxis) {
			return false
		}
	}
	return true
}

// ofLatent reports whether an index scales a norm inside a layer. Every other norm reads the residual stream, which
// belongs to the whole model. Attention with latent vectors stores the norm's output instead of keys and values.
func (l *Layout) ofLatent(x *Index) bool {
	for _, u := range x.Uses {
		c := l.Claims[u.Tensor]
		if c.Role != Norm || !u.Signed {
			continue
		}
		for _, name := range c.Axes[u.Axis].Indices() {
			if y := l.byName[name]; y != x && !y.global {
				return true
			}
		}
	}
	return false
}
