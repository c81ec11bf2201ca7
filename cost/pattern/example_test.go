package pattern_test

import (
	"context"
	"fmt"
	"log"

	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/weights"
)

func ExamplePattern_Generate() {
	p, err := pattern.Parse("const(1.5) | repeat(rows=2, columns=1)")
	if err != nil {
		log.Fatal(err)
	}
	data, err := p.Generate(context.Background(), pattern.Spec{DType: weights.BF16, Rows: 1, Cols: 2}, 4)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: % x\n", p, data)
	// Output: const(1.5) | repeat(rows=2): c0 3f c0 3f
}

func ExampleSyntaxError() {
	_, err := pattern.Parse("normal(0,0.02) | sparce(0.5)")
	fmt.Println(err)
	// Output:
	// expected a step, found sparce: did you mean sparse?
	//   normal(0,0.02) | sparce(0.5)
	//                    ^
}
