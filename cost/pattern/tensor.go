package pattern

import (
	"fmt"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
)

// makeTensor returns a field that reads blocks from a mapped file. If the file has another type, it rounds the
// values.
func makeTensor(s *stage, args []any, _ *field) (*field, error) {
	at := args[0].(tensorName)
	if weights.IsURL(at.path) {
		return nil, fmt.Errorf("tensor(%s): patterns read local files only: download the file, and give its path", spellPlace(at))
	}
	model, err := weights.Open(at.path)
	if err != nil {
		return nil, fmt.Errorf("tensor(%s): %w", spellPlace(at), err)
	}
	s.opened = append(s.opened, model)
	fail := func(format string, args ...any) error {
		return fmt.Errorf("tensor(%s): %s", spellPlace(at), fmt.Sprintf(format, args...))
	}
	t, ok := model.Tensor(at.name)
	if !ok {
		var all []string
		for _, t := range model.Infos() {
			all = append(all, t.Name)
		}
		if len(all) == 0 {
			return nil, fail("the file has no tensors")
		}
		if len(all) > 10 {
			all = append(all[:10], "…")
		}
		return nil, fail("the file has no tensor %s; it has %s", at.name, strings.Join(all, ", "))
	}
	from, ok := t.DType.Format()
	if !ok {
		return nil, fail("the tensor's type is %s: expected F32, F16, BF16, F8_E4M3, F8_E5M2 or I8", t.DType)
	}
	if rows, cols := t.Matrix(); rows*cols != s.rows*s.cols || rows*cols > 0 && rows != s.rows {
		return nil, fail("the tensor has %d × %d elements, but the pattern's matrix has %d × %d: the shapes must be equal", rows, cols, s.rows, s.cols)
	}
	to, size := s.format, from.Bits/8
	return s.matrix(true, func(dst []byte, rows, cols Range) error {
		return weights.Guard(t.File, func() error {
			if from.DType == to.DType {
				copyBlock(dst, t.Data, s.cols*size, size, rows, cols)
				return nil
			}
			i := 0
			for r := rows.From; r < rows.To; r++ {
				for c := cols.From; c < cols.To; c++ {
					to.SetElem(dst, i, to.FromValue(from.Value(from.Elem(t.Data, r*s.cols+c))))
					i++
				}
			}
			return nil
		})
	}), nil
}
