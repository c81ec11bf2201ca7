// Package weights reads and writes model weights: safetensors files and the folders that hold
// them.
//
// [Open] reads headers and maps the data. A [Tensor]'s Data is the mapped memory: read only, and valid until [Model.Close]. The
// system loads data when it is read, so a model may be larger than memory. Open checks every rule of the upstream format: dense,
// ordered offsets, byte lengths that equal shape times type, no duplicate names.
//
// Shapes are row-major. A tensor is seen as a matrix in storage order: see [Info.Matrix].
//
// Methods that only read are safe for concurrent use. Errors about a file's contents are
// [*FormatError] and name the file, the tensor and the byte.
package weights
