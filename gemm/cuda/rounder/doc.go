// Package rounder rounds the values of linear layers on an NVIDIA GPU. It implements [rounding.Device]: the factors of
// Hessians, the values and the error powers are bit-identical to the CPU's.
//
// Every float32 sum is one chain of fused multiply-adds, as in package sgemm. Products therefore run on the card's
// float32 units and not on tensor cores. Blocks of 128 columns are rounded at a time, for all rows at once. Several
// choosers of one layer are processed together, each with its own copy of the rows.
//
// Hessians stay on the card as upper triangles, within a limited share of the free memory. The least recently used
// Hessian is evicted first. Factors are computed again for each use, which is faster than reading them.
package rounder
