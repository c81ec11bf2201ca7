package gemm

// coldBytes is the least mean size of a stack of weights. Reading 32 MB takes 8 µs at 4 TB/s, several times as long as
// a launch.
const coldBytes = 32 << 20

// Stack returns the number of copies in each stack of weights that are read from memory. layers is the number of layers
// and bytes their total size. With this number of copies, the mean size of a layer's stack is at least 32 MB. All
// layers have the same number of copies, so each layer is weighted by its size.
func Stack(layers, bytes int) int { return (coldBytes*layers + bytes - 1) / max(1, bytes) }
