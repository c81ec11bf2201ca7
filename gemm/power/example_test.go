package power_test

import (
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// The energy–delay product of a change that saves 4 % of energy and 3 % of time.
func ExampleEDP() {
	fmt.Printf("%.4f\n", power.EDP(0.96, 0.97))
	// Output: 0.9312
}
