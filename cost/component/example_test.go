package component_test

import (
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/cost/component"
)

// The components of a card's power are found by its name.
func ExampleFind() {
	_, err := component.Find("another card")
	fmt.Println(errors.Is(err, component.ErrUnknown))
	// Output: true
}
