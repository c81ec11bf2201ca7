package pattern

const (
	anyNumber = 3.4028234663852886e38 // the largest float32
	smallest  = 0x1p-149
)

// Parameters shared by several operations.
var (
	byRows = Parameter{Name: "rows", Kind: Integer, Default: "1", Min: 1, Max: 1 << 30, Named: true, Doc: "the number of rows in a run"}
	byCols = Parameter{Name: "columns", Kind: Integer, Default: "1", Min: 1, Max: 1 << 30, Named: true, Doc: "the number of columns in a run"}
	lowK   = Parameter{Name: "low", Kind: Integer, Default: "0", Min: 0, Max: 32, Named: true, Doc: "the number of bits, counted from the least significant bit"}
	highK  = Parameter{Name: "high", Kind: Integer, Default: "0", Min: 0, Max: 32, Named: true, Doc: "the number of bits, counted from the sign bit, the most significant bit"}
)

func number(name string, least, most float64, doc string) Parameter {
	return Parameter{Name: name, Kind: Number, Min: least, Max: most, Doc: doc}
}

func always([]any) bool { return true }

// operations are all operations of the language.
var operations = []*Operation{
	{
		Name: "normal", Source: true,
		Parameters: []Parameter{
			number("mean", -anyNumber, anyNumber, "the mean of the distribution"),
			number("sigma", 0, anyNumber, "the standard deviation of the distribution"),
		},
		Doc:     "Draws every element from a normal distribution.",
		Example: "normal(0,0.02)",
		draw:    drawNormal,
	},
	{
		Name: "uniform", Source: true,
		Parameters: []Parameter{
			number("low", -anyNumber, anyNumber, "the lower end"),
			number("high", -anyNumber, anyNumber, "the upper end, at least the lower end"),
		},
		Doc:     "Draws every element from a uniform distribution.",
		Example: "uniform(-1,1)",
		check: func(args []any) (int, string) {
			if low, high := args[0].(float64), args[1].(float64); high < low {
				return 1, "expected high, a number from low (" + formatNumber(low) + ") on, found " + formatNumber(high)
			}
			return 0, ""
		},
		draw: drawUniform,
	},
	{
		Name: "const", Source: true,
		Parameters: []Parameter{number("value", -anyNumber, anyNumber, "the value of every element")},
		Doc:        "Gives every element the same value.",
		Example:    "const(0.02)",
		draw:       drawConst,
	},
	{
		Name: "zeros", Source: true,
		Doc:     "Gives every element the value 0.",
		Example: "zeros",
		draw:    drawZeros,
	},
	{
		Name: "set", Source: true,
		Parameters: []Parameter{
			{Name: "size", Kind: Integer, Min: 1, Max: 1 << 20, Doc: "the number of values"},
			{Name: "source", Kind: Nested, Doc: "the source of the values"},
		},
		Doc:     "Draws a set of values. Every element takes one of these values, with equal probability. set(1,normal(0,1)) gives every element the same random value.",
		Example: "set(16,normal(0,2^10))",
		make:    makeSet,
	},
	{
		Name: "tensor", Source: true,
		Parameters: []Parameter{{Name: "path:name", Kind: Place, Doc: "the path of a safetensors file or model folder, and the name of a tensor; put path:name in double quotes if it has an unbalanced parenthesis"}},
		Doc:        "Reads a stored tensor. The last dimension becomes the columns. All other dimensions together become the rows. A vector becomes one column. The shape must equal the shape of the pattern's matrix. Values of another dtype are rounded.",
		Example:    "tensor(model/model.safetensors:lm_head.weight)",
		make:       makeTensor,
	},

	{
		Name:       "shift",
		Parameters: []Parameter{number("value", -anyNumber, anyNumber, "the number that is added")},
		Doc:        "Adds a number.",
		Example:    "normal(0,0.02) | shift(0.16)",
		make:       arithmetic(shiftValue),
	},
	{
		Name:       "scale",
		Parameters: []Parameter{number("factor", -anyNumber, anyNumber, "the factor")},
		Doc:        "Multiplies by a number.",
		Example:    "normal(0,1) | scale(2^-6)",
		make:       arithmetic(scaleValue),
	},
	{
		Name:    "abs",
		Doc:     "Replaces every element by its magnitude. In I8, −128 becomes 127.",
		Example: "normal(0,0.02) | abs",
		make:    arithmetic(absValue),
	},
	{
		Name:       "clip",
		Parameters: []Parameter{number("limit", 0, anyNumber, "the largest magnitude, rounded to the dtype")},
		Doc:        "Limits the magnitude of every element.",
		Example:    "normal(0,1) | clip(2)",
		make:       arithmetic(clipValue),
	},
	{
		Name:       "quantize",
		Parameters: []Parameter{number("step", smallest, anyNumber, "the distance between multiples")},
		Doc:        "Moves every element to the nearest multiple of a step, ties to even. A zero result is +0.",
		Example:    "normal(0,1) | quantize(0.25)",
		make:       arithmetic(quantizeValue),
	},
	{
		Name: "round",
		Parameters: []Parameter{
			{Name: "bits", Kind: Integer, Min: 0, Max: 23, Doc: "the number of low mantissa bits that become zero; in a dtype with fewer mantissa bits (I8: 6), all of them become zero"},
			{Name: "mode", Kind: Word, Default: "nearest", Words: []string{"nearest", "truncate"}, Doc: "nearest rounds to the nearest value, ties to even; truncate rounds towards zero"},
		},
		Doc:     "Rounds to values with fewer mantissa bits, like the pass round.",
		Example: "normal(0,0.02) | round(4)",
		make:    makeRound,
	},
	{
		Name:       "grid",
		Parameters: []Parameter{number("s", 0.25, 1<<20, "a row's step is the power of two nearest to the row's root mean square divided by s")},
		Doc:        "Moves every element to the nearest multiple of its row's step, ties to even, like the pass grid. A zero result is +0.",
		Example:    "normal(0,0.02) | grid(16)",
		wide:       always,
		make:       makeGrid,
	},
	{
		Name:       "flip",
		Parameters: []Parameter{number("p", 0, 1, "the probability that a bit flips")},
		Doc:        "Flips bits at random.",
		Example:    "const(1) | flip(1%)",
		make:       makeFlip,
	},
	{
		Name: "random", Parameters: []Parameter{lowK, highK}, anyOf: true,
		Doc:     "Replaces the least or most significant bits by random bits.",
		Example: "const(1) | random(low=4)",
		make:    makeRandom,
	},
	{
		Name: "zero", Parameters: []Parameter{lowK, highK}, anyOf: true,
		Doc:     "Zeroes the least or most significant bits of the stored element. I8 is stored in two's complement, a float as sign, exponent and mantissa.",
		Example: "normal(0,1) | zero(low=7)",
		make:    makeZero,
	},
	{
		Name: "signs",
		Parameters: []Parameter{{Name: "which", Kind: Word, Words: []string{"random", "rows", "columns"},
			Doc: "random changes the sign of each element with probability 1/2; rows changes all signs in every row with more negative than positive elements; columns does this for every column"}},
		Doc:     "Changes the sign of elements, or of whole rows or columns. The sign of a zero changes, too. In I8, −128 becomes 127.",
		Example: "normal(0,0.02) | signs(rows)",
		wide:    func(args []any) bool { return args[0] != "random" },
		make:    makeSigns,
	},
	{
		Name: "sort",
		Parameters: []Parameter{
			{Name: "share", Kind: Number, Default: "1", Min: 0, Max: 1, Doc: "the share of the elements to sort, rounded to a whole number of elements"},
			{Name: "by", Kind: Word, Default: "rows", Words: []string{"rows", "columns", "within"}, Named: true,
				Doc: "rows fills the first places in row-major order, columns in column-major order; within sorts every row by itself"},
		},
		Doc: "Puts the lowest elements into the first places, in ascending order. The other elements follow in their original order. " +
			"−0 comes before 0. A positive NaN comes after infinity, a negative NaN before negative infinity. Equal elements keep their order.",
		Example: "normal(0,1) | sort(50%,by=columns)",
		wide:    always,
		make:    makeSort,
	},
	{
		Name:    "transpose",
		Doc:     "Transposes the matrix. The pattern before this step has as many rows as the result has columns.",
		Example: "normal(0,1) | sort | transpose",
		turns:   true,
		make:    makeTranspose,
	},
	{
		Name: "sparse",
		Parameters: []Parameter{
			number("share", 0, 1, "the probability that a block becomes zero"),
			{Name: "block", Kind: Shape, Default: "1x1", Named: true, Doc: "the numbers of rows and columns of a block"},
		},
		Doc:     "Zeroes blocks at random.",
		Example: "normal(0,0.02) | sparse(0.5,block=16x16)",
		make:    makeSparse,
	},
	{
		Name:       "reorder",
		Parameters: []Parameter{{Name: "which", Kind: Word, Words: []string{"rows", "columns"}, Doc: "the dimension that is permuted"}},
		Doc: "Puts similar rows or columns next to each other. The first row or column stays. Each place takes the remaining row or column that differs from the place before in the fewest bits. The comparison uses a sample of at most 1024 bits of each row or column. " +
			"Time grows with the square of the number of rows or columns: 8192 take about a second.",
		Example: "normal(0,0.02) | round(6) | reorder(rows)",
		wide:    always,
		make:    makeReorder,
	},
	{
		Name: "repeat", Parameters: []Parameter{byRows, byCols}, anyOf: true,
		Doc:     "Makes runs of identical rows or columns. Row i of the result is row ⌊i/rows⌋·rows of the input.",
		Example: "normal(0,0.02) | repeat(rows=4)",
		make:    makeRepeat,
	},
	{
		Name: "cycle", Parameters: []Parameter{
			{Name: "rows", Kind: Integer, Default: "0", Min: 0, Max: 1 << 30, Named: true, Doc: "the number of repeated rows; 0 repeats nothing"},
			{Name: "columns", Kind: Integer, Default: "0", Min: 0, Max: 1 << 30, Named: true, Doc: "the number of repeated columns; 0 repeats nothing"},
		}, anyOf: true,
		Doc:     "Repeats the first rows or columns. Row i of the result is row i mod rows of the input.",
		Example: "normal(0,0.02) | cycle(rows=2)",
		make:    makeCycle,
	},
}
