// Command gen writes package cost's AVX-512 kernel and its Go declarations. Twins in plain Go, with
// the same algorithms in words of 64 bits, stand in cost's files of the same names. Run go generate
// in cost after a change here.
package main

import . "github.com/mmcloughlin/avo/build"

func main() {
	ConstraintExpr("!purego")
	addXor()
	addOnes()
	for _, l := range lanes {
		l.addSpecials()
	}
	Generate()
}
