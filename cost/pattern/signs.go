package pattern

import "github.com/lowtoggle/lowtoggle/weights"

// negate multiplies by −1; −128 becomes 127.
func negate(f weights.Format, b uint32) uint32 {
	if f.IsFloat() {
		return b ^ f.SignMask()
	}
	return f.FromValue(-f.Value(b))
}

// sign returns 1, 0 or −1; 0 for NaN.
func sign(v float32) int {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return -1
	}
	return 0
}

func makeSigns(s *stage, args []any, inner *field) (*field, error) {
	f := s.format
	signOf := tabled(s, func(b uint32) int { return sign(f.Value(b)) })
	mostlyPositive := func(row []byte) {
		n, sum := len(row)/(f.Bits/8), 0
		for i := range n {
			sum += signOf(f.Elem(row, i))
		}
		for i := 0; sum < 0 && i < n; i++ {
			f.SetElem(row, i, negate(f, f.Elem(row, i)))
		}
	}
	switch args[0].(string) {
	case "rows":
		return s.byRow(inner, mostlyPositive), nil
	case "columns":
		across := s.across()
		turned, err := makeTranspose(across, nil, inner)
		if err != nil {
			return nil, err
		}
		return makeTranspose(s, nil, across.byRow(turned, mostlyPositive))
	}
	return s.changed(inner, func(b uint32, word uint64) uint32 {
		if word>>63 == 1 {
			return negate(f, b)
		}
		return b
	}), nil
}
