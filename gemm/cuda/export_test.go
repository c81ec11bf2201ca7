package cuda

import "testing"

// FakeCard is the fake card, for tests of the packages that use this package. Its products and kernels compute nothing.
type FakeCard struct {
	card *card
}

// NewFakeCard returns a card with free bytes of free memory.
func NewFakeCard(t *testing.T, free int) FakeCard {
	c := newCard(t)
	c.lazy, c.free = true, uint64(free)
	return FakeCard{c}
}

// Open opens the card until the test ends.
func (f FakeCard) Open(t *testing.T) *Device { return openFake(t, f.card) }

// Limit sets the card's total memory in bytes, which allocations reduce.
func (f FakeCard) Limit(bytes int) { f.card.limit = uint64(bytes) }

// Fail plants a failure of a driver's or library's function, after the given number of successful calls.
func (f FakeCard) Fail(call string, after int) { f.card.fail[call] = after }

// Heal removes a planted failure.
func (f FakeCard) Heal(call string) { delete(f.card.fail, call) }

// Failures returns the number of planted failures that have happened.
func (f FakeCard) Failures() int { return f.card.failures }

// Ada makes it a card of compute capability 8.9, which has less shared memory.
func (f FakeCard) Ada() { f.card.capability, f.card.shared = 89, 99<<10 }

// NoCompiler removes NVRTC.
func (f FakeCard) NoCompiler() { f.card.nvrtc.missing = true }

// Kinds returns the number of live objects on the card by kind.
func (f FakeCard) Kinds() map[string]int { return f.card.kinds() }

// Launches returns the launches of kernels since the last call.
func (f FakeCard) Launches() []FakeLaunch {
	l := f.card.launches
	f.card.launches = nil
	return l
}

// FakeProduct is the operands and the result of a product y = x·wᵀ.
type FakeProduct struct{ X, W, Y Address }

// Products returns the products since the last call, in the order in which they were queued or captured.
func (f FakeCard) Products() []FakeProduct {
	p := f.card.products
	f.card.products = nil
	return p
}

// Ran calls f for every launch as it runs.
func (f FakeCard) Ran(g func(FakeLaunch)) { f.card.ran = g }

// Memory is memory of the card.
func (f FakeCard) Memory(at Address, bytes int) []byte {
	return f.card.region(uint64(at), uint64(bytes))
}
