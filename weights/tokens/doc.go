// Package tokens reads token files: safetensors with integer tensors [n, T], n sequences of T tokens.
//
// A model folder may have a token file beside its weights ([Path]). A tensor's name gives its purpose. Tensors with calib,
// train or search in their names are for calibration: transforms are chosen with them. Tensors with eval, test, valid, judge
// or held in their names are for evaluation only. [File.Split] reads the names.
package tokens
