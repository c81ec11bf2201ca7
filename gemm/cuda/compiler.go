package cuda

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// ErrNoCompiler is wrapped by every error of compiling kernels at run time. NVRTC may be missing or too old, or may not
// support the card. The error's text gives the reason.
var ErrNoCompiler = errors.New("no usable CUDA compiler (NVRTC)")

// minCompiler is the oldest supported major version of NVRTC.
const minCompiler = 12

// compiler holds NVRTC's functions, with C's types as in api.
type compiler struct {
	library string // path of the opened file

	mu     sync.Mutex
	images map[[sha256.Size]byte][]byte // machine code by hash of source and options

	nvrtcVersion           func(major, minor *int32) int32
	nvrtcGetErrorString    func(r int32) string
	nvrtcCreateProgram     func(program *uintptr, source, name *byte, headers int32, texts, names uintptr) int32
	nvrtcDestroyProgram    func(program *uintptr) int32
	nvrtcCompileProgram    func(program uintptr, count int32, options **byte) int32
	nvrtcGetCUBINSize      func(program uintptr, bytes *uint64) int32
	nvrtcGetCUBIN          func(program uintptr, image *byte) int32
	nvrtcGetProgramLogSize func(program uintptr, bytes *uint64) int32
	nvrtcGetProgramLog     func(program uintptr, log *byte) int32
}

func (c *compiler) symbols() []symbol {
	return []symbol{
		{"nvrtcVersion", &c.nvrtcVersion},
		{"nvrtcGetErrorString", &c.nvrtcGetErrorString},
		{"nvrtcCreateProgram", &c.nvrtcCreateProgram},
		{"nvrtcDestroyProgram", &c.nvrtcDestroyProgram},
		{"nvrtcCompileProgram", &c.nvrtcCompileProgram},
		{"nvrtcGetCUBINSize", &c.nvrtcGetCUBINSize},
		{"nvrtcGetCUBIN", &c.nvrtcGetCUBIN},
		{"nvrtcGetProgramLogSize", &c.nvrtcGetProgramLogSize},
		{"nvrtcGetProgramLog", &c.nvrtcGetProgramLog},
	}
}

// loadCompiler opens the newest NVRTC whose machine code the driver can load. driver is the driver's CUDA version in
// the format of cuDriverGetVersion.
func loadCompiler(o opener, m machine, driver int32) (*compiler, error) {
	c := new(compiler)
	var files []string
	for major := driver / 1000; major >= minCompiler; major-- {
		files = append(files, fmt.Sprintf("libnvrtc.so.%d", major))
	}
	path, err := bindFirst(o, m, "NVIDIA's run-time compiler", files, m.cudaFolders(), c.symbols(),
		"install the CUDA toolkit (its nvrtc package is enough), or set CUDA_HOME to the folder of a toolkit")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoCompiler, err)
	}
	c.library = path
	var major, minor int32
	if c.nvrtcVersion(&major, &minor) != 0 || major < minCompiler {
		return nil, fmt.Errorf("%w: %s is version %d.%d, but %d.0 or later is needed: update the CUDA toolkit", ErrNoCompiler, path, major, minor, minCompiler)
	}
	return c, nil
}

// once is compile with a cache of all sources that this process has compiled.
func (c *compiler) once(name, source string, capability int, defines []string) ([]byte, error) {
	key := sha256.Sum256(fmt.Appendf(nil, "%d %q %s", capability, defines, source))
	c.mu.Lock()
	image := c.images[key]
	c.mu.Unlock()
	if image != nil {
		return image, nil
	}
	image, err := c.compile(name, source, capability, defines)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.images == nil {
		c.images = map[[sha256.Size]byte][]byte{}
	}
	c.images[key] = image
	return image, nil
}

// compile returns the machine code of a source for a compute capability (90 means 9.0). Messages contain name. Defines
// are macros in the form NAME=VALUE.
func (c *compiler) compile(name, source string, capability int, defines []string) (image []byte, err error) {
	var program uintptr
	if err := c.check("nvrtcCreateProgram", c.nvrtcCreateProgram(&program, cText(source), cText(name), 0, 0, 0)); err != nil {
		return nil, err
	}
	defer c.nvrtcDestroyProgram(&program)
	options := []*byte{cText("--gpu-architecture=" + architecture(capability)), cText("--std=c++17")}
	for _, d := range defines {
		options = append(options, cText("-D"+d))
	}
	if r := c.nvrtcCompileProgram(program, int32(len(options)), &options[0]); r != 0 {
		return nil, fmt.Errorf("%w: %s does not compile for compute capability %d.%d with %s (a GPU that is newer than the CUDA toolkit needs a newer toolkit): nvrtcCompileProgram: %s (%d)%s",
			ErrNoCompiler, name, capability/10, capability%10, c.library, c.nvrtcGetErrorString(r), r, c.log(program))
	}
	var bytes uint64
	if err := c.check("nvrtcGetCUBINSize", c.nvrtcGetCUBINSize(program, &bytes)); err != nil {
		return nil, err
	}
	if bytes == 0 {
		return nil, fmt.Errorf("%w: %s returned no machine code for %s: install another version of the CUDA toolkit", ErrNoCompiler, c.library, name)
	}
	image = make([]byte, bytes)
	return image, c.check("nvrtcGetCUBIN", c.nvrtcGetCUBIN(program, &image[0]))
}

// architecture returns the compiler's name of a target. Hopper's warpgroup instructions need the target sm_90a.
func architecture(capability int) string {
	if capability == 90 {
		return "sm_90a"
	}
	return fmt.Sprintf("sm_%d", capability)
}

// logLines is the number of lines of the compiler's log that an error shows.
const logLines = 20

// log returns the first lines of the compiler's messages, or an empty text.
func (c *compiler) log(program uintptr) string {
	var bytes uint64
	if c.nvrtcGetProgramLogSize(program, &bytes) != 0 || bytes < 2 {
		return ""
	}
	all := make([]byte, bytes)
	if c.nvrtcGetProgramLog(program, &all[0]) != 0 {
		return ""
	}
	lines := strings.Split(strings.TrimRight(text(all), "\n"), "\n")
	return ":\n" + strings.Join(lines[:min(len(lines), logLines)], "\n")
}

func (c *compiler) check(call string, r int32) error {
	if r == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s: %s (%d)", ErrNoCompiler, call, c.nvrtcGetErrorString(r), r)
}

// cText returns a NUL-terminated copy of s.
func cText(s string) *byte {
	b := append([]byte(s), 0)
	return &b[0]
}
