// Package weights reads and writes model weights: safetensors files, and folders of these files.
//
// [Open] reads headers and maps the data. A [Tensor]'s Data is the mapped memory: read only, and valid until [Model.Close].
// The system loads data when it is read, so a model may be larger than memory. Open checks every rule of the safetensors
// format: tensors lie without gap or overlap, each has the bytes that its shape and type need, and no name appears twice.
//
// Shapes are row-major. [Info.Matrix] returns a tensor's shape as a matrix in storage order.
//
// Methods that only read are safe for concurrent use. Errors about a file's contents are [*FormatError]: they name the file,
// and the tensor and the byte if there is one.
package weights
