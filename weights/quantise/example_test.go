package quantise_test

import (
	"fmt"
	"log"

	"github.com/lowtoggle/lowtoggle/weights/quantise"
)

// A format of quantised checkpoints is found by its name.
func ExampleParseTarget() {
	f, err := quantise.ParseTarget("fp8")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.Name)
	// Output: fp8
}
