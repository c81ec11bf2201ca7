// Command gen writes package cost's AVX-512 kernel and its Go declarations. The files of the same names in package
// cost have the same algorithms in plain Go, in words of 64 bits. Run go generate in cost after a change here.
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
