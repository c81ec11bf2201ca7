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

// fileName returns the name of an input's file, after the first layer that reads the input.
func fileName(layer string) string { return url.QueryEscape(layer) + fileSuffix }

// header is the first line of a file.
type header struct {
	Format string `json:"format"`
	Key    string `json:"key"`
	input
}

// input describes the input of one or several layers.
type input struct {
	Layers []string `json:"layers"`
	Width  int      `json:"inputs"`
	Tokens int      `json:"tokens"`
	Range
}

// errDamaged is wrapped in the error of a file that cannot be used.
var errDamaged = errors.New("is damaged")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// bufferSize is larger than the longest header.
const bufferSize = 1 << 18

// writeTriangle writes a header, the rows of an upper triangle, and the checksum.
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

// readTriangle reads a file and checks it. fits decides whether the header is the expected one; its width is
// then trusted. row gets each row from the diagonal on. The rows may be used only if there is no error.
func readTriangle(ctx context.Context, path string, fits func(header) bool, row func(i int, raw []byte)) (header, error) {
	var h header
	damaged := func(what string) (header, error) { return header{}, fmt.Errorf("%s: %w: %s", path, errDamaged, what) }
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return damaged("the file was removed")
	}
	if err != nil {
		return h, err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, bufferSize)
	line, err := r.ReadSlice('\n')
	switch {
	case err == io.EOF || err == bufio.ErrBufferFull:
		return damaged("its header line is too long or cut off")
	case err != nil:
		return h, err
	case json.Unmarshal(line, &h) != nil || h.Format != fileFormat || !fits(h):
		return damaged("its header does not agree with the index")
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
		return damaged("its checksum does not match its data")
	}
	return h, nil
}
