package operand_test

import (
	"fmt"
	"log"

	"github.com/lowtoggle/lowtoggle/gemm/operand"
)

// A source is a pattern, or a model and a tensor of it.
func ExampleParse() {
	s, err := operand.Parse("normal(0,0.02) | round(4)")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Pattern, s.HasShape())
	_, err = operand.Parse("no-folder:lm_head.weight")
	fmt.Println(err != nil)
	// Output:
	// normal(0,0.02) | round(4) false
	// true
}
