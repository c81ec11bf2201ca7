package decoder

// Rotary turns pairs of a head's channels by position × frequency: channels i and i+n/2 of the n that turn, or
// neighbours.
type Rotary struct {
	Frequencies
	// Long are the frequencies of sequences longer than LongFrom; nil: the same.
	Long       *Frequencies
	LongFrom   int
	First      int // the first channel of a head that turns
	Neighbours bool
}

// Frequencies has a frequency for each pair.
type Frequencies struct {
	Radians []float32 // per position
	Length  float32   // factor of the turned channels
}
