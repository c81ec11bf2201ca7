package bounded

import (
	"bufio"
	"errors"
	"fmt"
)

// Line reads a line of at most most bytes, with its line break. The error for a last line without a line break is
// io.EOF.
func Line(r *bufio.Reader, most int64) (line []byte, err error) {
	for {
		piece, err := r.ReadSlice('\n')
		if int64(len(line)+len(piece)) > most {
			return nil, fmt.Errorf("%w: lowtoggle reads lines of at most %d MiB", ErrTooLarge, most>>20)
		}
		line = append(line, piece...)
		if err == nil {
			return line, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}
