package weights

import (
	"slices"
	"sync"
	"unsafe"
)

// Sampled advises the system that only parts of data, a piece of a mapped file, are read until end is called. The system then
// reads these parts in advance. It does not read the megabytes around each part, as it does for an ordinary mapping. After
// end, the parts may leave the process's memory. Sampled has no effect on other memory, and on systems without this advice.
//
// Concurrent calls for overlapping data are harmless, but the system may then read more than the parts.
func Sampled(data []byte, parts ...[]byte) (end func()) {
	end, stored := pages.sampled(data)
	if !stored && !adviseMapped(data, readsLittle) {
		return func() {}
	}
	for _, p := range parts {
		Prefetch(p)
	}
	if stored {
		return end
	}
	return func() {
		Forget(data)
		adviseMapped(data, readsAll)
	}
}

// Prefetch advises the system that data, a piece of a mapped file or of a file in an object store, is needed soon.
func Prefetch(data []byte) {
	adviseMapped(data, readsSoon)
	pages.prefetch(data)
}

// Forget removes data, a piece of a mapped file, from the process's memory. The system reads the data again when needed.
func Forget(data []byte) { adviseMapped(data, readNoMore) }

// advice is a hint to the system about memory of a mapped file.
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

// adviseMapped passes advice about data in a mapped file, and returns false for other data. It holds the lock, so that the
// mapping cannot end meanwhile: the addresses could then belong to other memory, which [readNoMore] would clear.
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
