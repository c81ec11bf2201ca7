package weights

// ShiftSuffix, after a weight's name, is the name of the extra tensor that the pass shift stores. The tensor is F32 of shape
// [outputs]. For each output, it holds the constant that was added to all of the output's weights.
const ShiftSuffix = ".lowtoggle_shift"
