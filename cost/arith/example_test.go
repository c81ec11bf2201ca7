package arith_test

import (
	"fmt"
	"log"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Types have names. Tensors of a dtype have a type that multiplies them.
func ExampleParseType() {
	t, err := arith.ParseType("bf16")
	if err != nil {
		log.Fatal(err)
	}
	of, ok := arith.TypeOf(weights.BF16)
	fmt.Println(t, t == of, ok)
	_, err = arith.ParseType("bf17")
	fmt.Println(err)
	// Output:
	// bf16 true true
	// unknown arithmetic "bf17": use one of fp32, tf32, fp16, bf16, fp16-cuda, fp8, int8
}
