package flag

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseSize reads a number of bytes with an optional unit, such as 2GB.
func ParseSize(s string) (int64, error) {
	number, factor := strings.ToUpper(strings.TrimSpace(s)), 1.0
	for _, u := range []struct {
		name   string
		factor float64
	}{{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}} {
		if n, ok := strings.CutSuffix(number, u.name); ok {
			number, factor = n, u.factor
			break
		}
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !(v*factor >= 1 && v*factor < 1<<62) {
		return 0, fmt.Errorf("%q is not a size such as 500MB or 2GB", s)
	}
	return int64(v * factor), nil
}
