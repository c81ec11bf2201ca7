package weights

// ShiftSuffix follows a weight's name in the name of the extra F32 tensor [outputs] that stores a shift:
// one constant per output, which was added to all of the output's weights.
const ShiftSuffix = ".lowtoggle_shift"
