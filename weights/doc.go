// Package weights reads and writes model weights: safetensors files and the folders that hold
// them.
//
// [Open] reads only headers and maps the data; a [Tensor]'s Data is the file's memory itself, read
// only, and valid until [Model.Close]. Nothing is loaded before it is touched, so a model may be larger than memory. Every rule
// of the upstream format is checked before a byte of data is trusted: dense, ordered offsets, byte lengths that equal shape times
// type, no duplicate names.
//
// Shapes are row-major. A tensor is seen as a matrix in storage order: see [Info.Matrix].
//
// Methods that only read are safe for concurrent use. Errors about a file's contents are
// [*FormatError] and name the file, the tensor and the byte.
package weights
