package cost

// ValidateFacts returns an error that names the first fact out of its range.
func ValidateFacts(f Facts) error { return f.validate() }
