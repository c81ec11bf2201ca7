package forward

// heads says in which columns of the outputs of attention's first layers the heads are. Each KV head
// serves queries/kv query heads that follow each other.
type heads struct {
	queries, kv     int
	size, valueSize int // channels of a query or a key, and of a value
	// byHead: KV head by KV head, each the queries of its group, the key and the value. Otherwise all
	// queries, all keys, all values.
	byHead bool
}

// width is the number of columns.
func (h heads) width() int { return h.queries*h.size + h.kv*(h.size+h.valueSize) }

// query is the first column of a query head.
func (h heads) query(head int) int {
	if group := h.queries / h.kv; h.byHead {
		return head/group*(h.width()/h.kv) + head%group*h.size
	}
	return head * h.size
}

// key is the first column of a KV head's key.
func (h heads) key(kv int) int {
	if h.byHead {
		return kv*(h.width()/h.kv) + h.queries/h.kv*h.size
	}
	return (h.queries + kv) * h.size
}

// value is the first column of a KV head's value.
func (h heads) value(kv int) int {
	if h.byHead {
		return h.key(kv) + h.size
	}
	return (h.queries+h.kv)*h.size + kv*h.valueSize
}

// columns has the first column of every query and key.
func (h heads) columns() (queries, keys []int) {
	for i := range h.queries {
		queries = append(queries, h.query(i))
	}
	for i := range h.kv {
		keys = append(keys, h.key(i))
	}
	return queries, keys
}
