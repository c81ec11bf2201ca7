package hessian

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"net/url"
	"os"

	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
)

const (
	fileSuffix = ".moments"
	fileFormat = "lowtoggle moments 1"
)

// fileName is that of an input, after the first layer that has it.
func fileName(layer string) string { return url.QueryEscape(layer) + fileSuffix }

// header is the first line of a file.
type header struct {
	Format string `json:"format"`
	Key    string `json:"key"`
	input
}

// input is what one or several layers are fed with.
type input struct {
	Layers []string `json:"layers"`
	Width  int      `json:"inputs"`
	Tokens int      `json:"tokens"`
	Range
}

// errDamaged is wrapped where a file cannot be used.
var errDamaged = errors.New("is not as it was written")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// bufferSize is more than the longest header.
const bufferSize = 1 << 18

// writeTriangle writes a header, the rows of a triangle from the diagonal on, and the checksum.
func writeTriangle(ctx context.Context, path string, h header, row func(i int) []float32) error {
	line, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return atomicfile.Stream(path, func(w io.Writer) error {
		sum := crc32.New(castagnoli)
		summed := io.MultiWriter(w, sum)
		if _, err := summed.Write(append(line, '\n')); err != nil {
			return err
		}
		raw := make([]byte, 4*h.Width)
		for i := range h.Width {
			if err := ctx.Err(); err != nil {
				return err
			}
			values := row(i)
			for j, v := range values {
				binary.LittleEndian.PutUint32(raw[4*j:], math.Float32bits(v))
			}
			if _, err := summed.Write(raw[:4*len(values)]); err != nil {
				return err
			}
		}
		return binary.Write(w, binary.LittleEndian, sum.Sum32())
	})
}

// readTriangle reads a file. The width of a header that fits is taken for true; row is given each row
// from the diagonal on, which is not to be used before all of the file was found to be whole.
func readTriangle(ctx context.Context, path string, fits func(header) bool, row func(i int, raw []byte)) (header, error) {
	var h header
	damaged := func(what string) (header, error) { return header{}, fmt.Errorf("%s: %w: %s", path, errDamaged, what) }
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return damaged("it is gone")
	}
	if err != nil {
		return h, err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, bufferSize)
	line, err := r.ReadSlice('\n')
	switch {
	case err == io.EOF || err == bufio.ErrBufferFull:
		return damaged("its first line does not end")
	case err != nil:
		return h, err
	case json.Unmarshal(line, &h) != nil || h.Format != fileFormat || !fits(h):
		return damaged("its first line does not fit the index")
	}
	info, err := f.Stat()
	if err != nil {
		return h, err
	}
	if want := int64(len(line)) + 2*int64(h.Width)*int64(h.Width+1) + crc32.Size; info.Size() != want {
		return damaged(fmt.Sprintf("it has %d bytes, not %d", info.Size(), want))
	}
	sum := crc32.New(castagnoli)
	sum.Write(line)
	summed := io.TeeReader(r, sum)
	raw := make([]byte, 4*h.Width)
	for i := range h.Width {
		if err := ctx.Err(); err != nil {
			return h, err
		}
		rest := raw[4*i:]
		if _, err := io.ReadFull(summed, rest); err != nil {
			return h, fmt.Errorf("%s: %w", path, err)
		}
		row(i, rest)
	}
	var stored uint32
	if err := binary.Read(r, binary.LittleEndian, &stored); err != nil {
		return h, fmt.Errorf("%s: %w", path, err)
	}
	if stored != sum.Sum32() {
		return damaged("its checksum does not agree")
	}
	return h, nil
}
