package gemm

// coldBytes is the least mean size of a stack of weights. Reading it takes 8 µs at 4 TB/s, several times the duration of a launch.
const coldBytes = 32 << 20

// Stack returns the number of copies in each stack of weights that are read from memory. It brings the mean size of the stacks of
// layers, which have bytes in total, to 32 MB. All layers have the same number of copies, so each counts in proportion to its
// size.
func Stack(layers, bytes int) int { return (coldBytes*layers + bytes - 1) / max(1, bytes) }
