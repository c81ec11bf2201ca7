package weights

import (
	"slices"
	"sync"
	"unsafe"
)

// Sampled tells the system which parts of data, which lies in a mapped file, are read until end is called. The system then reads
// these parts in advance, and nothing else: an ordinary mapping reads megabytes around each place. What was read may leave the
// process's memory afterwards. This is advice: other data, and other systems, ignore it.
//
// Calls for overlapping data at the same time weaken each other's advice, and change nothing else.
func Sampled(data []byte, parts ...[]byte) (end func()) {
	if !adviseMapped(data, readsLittle) {
		return func() {}
	}
	for _, p := range parts {
		Prefetch(p)
	}
	return func() {
		Forget(data)
		adviseMapped(data, readsAll)
	}
}

// Prefetch tells the system that data, which lies in a mapped file, is needed soon.
func Prefetch(data []byte) { adviseMapped(data, readsSoon) }

// Forget takes data, which lies in a mapped file, out of the process's memory. It is read again when it is needed.
func Forget(data []byte) { adviseMapped(data, readNoMore) }

// advice about memory of a mapped file.
type advice int

const (
	readsAll advice = iota
	readsLittle
	readsSoon
	readNoMore
)

// mappings are the mapped files, as first and last address.
var mappings struct {
	sync.RWMutex
	list [][2]uintptr
}

func addressOf(data []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(data))) }

// adviseMapped passes advice about data that lies in a mapped file, and returns false for other data. The mapping cannot end meanwhile:
// its addresses may then be those of other memory, which [readNoMore] would clear.
func adviseMapped(data []byte, a advice) bool {
	if len(data) == 0 {
		return false
	}
	first := addressOf(data)
	mappings.RLock()
	defer mappings.RUnlock()
	mapped := slices.ContainsFunc(mappings.list, func(m [2]uintptr) bool { return m[0] <= first && first+uintptr(len(data)) <= m[1] })
	if mapped {
		advise(data, a)
	}
	return mapped
}

// noteMapping records a mapping.
func noteMapping(m []byte) {
	mappings.Lock()
	defer mappings.Unlock()
	mappings.list = append(mappings.list, [2]uintptr{addressOf(m), addressOf(m) + uintptr(len(m))})
}

// dropMapping removes the record of a mapping that ends.
func dropMapping(m []byte) {
	mappings.Lock()
	defer mappings.Unlock()
	mappings.list = slices.DeleteFunc(mappings.list, func(e [2]uintptr) bool { return e[0] == addressOf(m) })
}
