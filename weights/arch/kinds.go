package arch

// Kind is a kind of index of a family as its file describes it, for readers.
type Kind struct {
	Name string   // "v"
	Doc  string   // a sentence or two; may be empty
	Per  []string // what there is one instance for each of: "layer", "kv"
	// Order, Signs and Powers say when its labels may be permuted, negated and scaled by 2^k:
	// "always", a condition such as "!tied !headless", or empty for never.
	Order, Signs, Powers string
}

// Kinds lists the family's kinds of index, in its file's order.
func (f *Family) Kinds() []Kind {
	var all []Kind
	for _, x := range f.indices {
		all = append(all, Kind{x.Name, x.Doc, x.Per, x.Permute, x.Sign, x.Scale})
	}
	return all
}

// Flag is a truth about a model that conditions speak of.
type Flag struct {
	Name   string   // "tied"
	Doc    string   // a sentence; may be empty
	Fields []string // of config.json, where it is read
}

// Flags lists the family's flags, in its file's order.
func (f *Family) Flags() []Flag {
	var all []Flag
	for _, s := range f.flags {
		all = append(all, Flag{s.Name, s.Doc, s.Fields})
	}
	return all
}
