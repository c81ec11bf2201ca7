// Package tokens reads token files: safetensors with integer tensors [n, T], n sequences of T tokens.
//
// A model folder has one beside its weights ([Path]). The names of its tensors say what they are for.
// Tensors with calib, train or search in their names are for calibration: a transform is chosen on them.
// Tensors with eval, test, valid, judge or held are for evaluation only. [File.Split] reads the names.
package tokens
