package apply

import "testing"

// TestBytesInFlightAreBounded: for any number of workers, the bytes that are computed and not yet written are
// limited.
func TestBytesInFlightAreBounded(t *testing.T) {
	b := newBuffers()
	held := 0
	for b.room.TryAcquire(chunkBytes) {
		held += chunkBytes
	}
	if held != inFlight {
		t.Fatalf("%d bytes may be in flight, want %d", held, inFlight)
	}
	b.put(b.get(chunkBytes), chunkBytes)
	if !b.room.TryAcquire(chunkBytes) {
		t.Error("returning a buffer frees no bytes")
	}
}
