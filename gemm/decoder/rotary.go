package decoder

// Rotary rotates pairs of a head's channels by position × frequency. A pair is channels i and i+n/2 of the n rotated
// ones, or two adjacent channels.
type Rotary struct {
	Frequencies
	// Long are the frequencies of sequences longer than LongFrom; nil: the same frequencies for all.
	Long       *Frequencies
	LongFrom   int
	First      int // the first rotated channel of a head
	Neighbours bool
}

// Frequencies has a frequency for each pair.
type Frequencies struct {
	Radians []float32 // angle per position in radians
	Length  float32   // factor of the rotated channels
}
