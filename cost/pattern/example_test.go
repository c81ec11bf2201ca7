package pattern_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"sync"

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

// registerTernary adds the step once, even if the example runs several times.
var registerTernary = sync.OnceValue(func() error {
	return pattern.Register(pattern.Step{
		Name: "ternary", Parameters: []string{"limit", "value"},
		Doc: "Replaces every element by −value, 0 or value; those up to limit become 0.",
		Of: func(args []float64) (func(float64) float64, error) {
			limit, value := args[0], args[1]
			if limit < 0 {
				return nil, errors.New("expected a limit from 0 on")
			}
			return func(v float64) float64 {
				if math.Abs(v) <= limit {
					return 0
				}
				return math.Copysign(value, v)
			}, nil
		},
	})
})

// A program adds its own step, and uses it in patterns.
func ExampleRegister() {
	if err := registerTernary(); err != nil {
		log.Fatal(err)
	}
	p, err := pattern.Parse("const(-0.3) | ternary(0.1, 1)")
	if err != nil {
		log.Fatal(err)
	}
	data, err := p.Generate(context.Background(), pattern.Spec{DType: weights.BF16, Rows: 1, Cols: 2}, 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: % x\n", p, data)
	_, err = pattern.Parse("const(-0.3) | ternary(-1, 1)")
	fmt.Println(err)
	// Output:
	// const(-0.3) | ternary(0.1,1): 80 bf 80 bf
	// ternary: expected a limit from 0 on
	//   const(-0.3) | ternary(-1, 1)
	//                         ^
}

func ExampleSyntaxError() {
	_, err := pattern.Parse("normal(0,0.02) | sparce(0.5)")
	fmt.Println(err)
	// Output:
	// expected a step, found sparce: did you mean sparse?
	//   normal(0,0.02) | sparce(0.5)
	//                    ^
}
