package decoder

// Heads maps the columns of the outputs of attention's first layers to heads. A KV head serves Queries/KV consecutive query
// heads.
type Heads struct {
	Queries, KV     int
	Size, ValueSize int // channels of a query or a key, and of a value
	// ByHead: KV head by KV head, each with the queries of its group, the key and the value. Otherwise all
	// queries, then all keys, then all values.
	ByHead bool
}

// Width returns the number of columns.
func (h Heads) Width() int { return h.Queries*h.Size + h.KV*(h.Size+h.ValueSize) }

// Query returns the first column of a query head.
func (h Heads) Query(head int) int {
	if !h.ByHead {
		return head * h.Size
	}
	group := h.Queries / h.KV
	return head/group*(h.Width()/h.KV) + head%group*h.Size
}

// Key returns the first column of a KV head's key.
func (h Heads) Key(kv int) int {
	if h.ByHead {
		return kv*(h.Width()/h.KV) + h.Queries/h.KV*h.Size
	}
	return (h.Queries + kv) * h.Size
}

// Value returns the first column of a KV head's value.
func (h Heads) Value(kv int) int {
	if h.ByHead {
		return h.Key(kv) + h.Size
	}
	return (h.Queries+h.KV)*h.Size + kv*h.ValueSize
}

// Columns returns the first column of every query and of every key.
func (h Heads) Columns() (queries, keys []int) {
	for i := range h.Queries {
		queries = append(queries, h.Query(i))
	}
	for i := range h.KV {
		keys = append(keys, h.Key(i))
	}
	return queries, keys
}
