package tokens_test

import (
	"fmt"

	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// A model folder has its token file beside the weights.
func ExamplePath() {
	_, err := tokens.Open(tokens.Path("no-such-model"))
	fmt.Println(err != nil)
	// Output: true
}
