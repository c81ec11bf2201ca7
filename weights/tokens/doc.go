// Package tokens reads token files: safetensors with integer tensors [n, T], n sequences of T tokens.
//
// A model folder has one beside its weights ([Path]). Its tensors' names say what they may be used
// for: those with calib, train or search in them to choose a transform, those with eval, test, valid,
// judge or held only to judge one. [File.Split] goes by them.
package tokens
