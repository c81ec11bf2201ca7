package cuda

import (
	"fmt"
	"strconv"
	"strings"
	"unsafe"
)

// fakeCompiler is a pretended NVRTC, whose machine code is the source. Its calls fail as planted in its card's fail.
type fakeCompiler struct {
	card         *card
	major, minor int32
	newest       int    // compute capability
	log          string // of a source that it refuses; empty: it compiles what the card can read
	nothing      bool   // machine code is empty
	missing      bool
	options      []string
	compiling    func() // is called while a source is compiled
	destroyed    func() // is called after a program was destroyed
}

func newFakeCompiler(c *card) *fakeCompiler {
	return &fakeCompiler{card: c, major: 13, minor: 1, newest: 121, compiling: func() {}, destroyed: func() {}}
}

func (f *fakeCompiler) functions() *compiler {
	c := f.card
	logs := map[uintptr]string{}
	return &compiler{
		library:             "libfakenvrtc.so",
		nvrtcVersion:        func(major, minor *int32) int32 { *major, *minor = f.major, f.minor; return 0 },
		nvrtcGetErrorString: func(r int32) string { return fmt.Sprintf("PLANTED %d", r) },
		nvrtcCreateProgram: func(program *uintptr, source, name *byte, headers int32, texts, names uintptr) int32 {
			if headers != 0 || texts != 0 || names != 0 || cString(name) == "" || !c.create("nvrtcCreateProgram", program, "program") {
				return 1
			}
			c.sources[*program] = cString(source)
			return 0
		},
		nvrtcDestroyProgram: func(program *uintptr) int32 {
			r := c.destroy(*program, "program")
			*program = 0
			f.destroyed()
			return int32(r)
		},
		nvrtcCompileProgram: func(program uintptr, count int32, options **byte) int32 {
			f.compiling()
			if !c.ok("nvrtcCompileProgram") {
				return 11
			}
			f.options = nil
			for _, o := range unsafe.Slice(options, count) {
				f.options = append(f.options, cString(o))
			}
			var r int32
			r, c.sources[program], logs[program] = f.compile(c.sources[program])
			return r
		},
		nvrtcGetCUBINSize: func(program uintptr, bytes *uint64) int32 {
			if *bytes = uint64(len(c.sources[program]) + 1); f.nothing {
				*bytes = 0
			}
			return pick[int32](c.ok("nvrtcGetCUBINSize"), 7)
		},
		nvrtcGetCUBIN: func(program uintptr, image *byte) int32 {
			source := c.sources[program]
			copy(bytesAt(image, uint64(len(source)+1)), source+"\x00")
			return pick[int32](c.ok("nvrtcGetCUBIN"), 7)
		},
		nvrtcGetProgramLogSize: func(program uintptr, bytes *uint64) int32 {
			*bytes = uint64(len(logs[program]) + 1)
			return pick[int32](c.ok("nvrtcGetProgramLogSize"), 7)
		},
		nvrtcGetProgramLog: func(program uintptr, log *byte) int32 {
			copy(bytesAt(log, uint64(len(logs[program])+1)), logs[program]+"\x00")
			return pick[int32](c.ok("nvrtcGetProgramLog"), 7)
		},
	}
}

// compile returns a status, the machine code and the log.
func (f *fakeCompiler) compile(source string) (r int32, code, log string) {
	defines := map[string]string{}
	for _, o := range f.options {
		if name, value, ok := strings.Cut(strings.TrimPrefix(o, "-D"), "="); ok {
			defines[name] = value
		}
		if sm, ok := strings.CutPrefix(strings.TrimSuffix(o, "a"), "--gpu-architecture=sm_"); ok {
			if capability, err := strconv.Atoi(sm); err != nil || capability > f.newest {
				return 5, "", "nvrtc: error: invalid value for --gpu-architecture (-arch)\n"
			}
		}
	}
	if f.log != "" {
		return 6, "", f.log
	}
	source = strings.ReplaceAll(source, "##T##_##D", defines["ATTENTION_TYPE"]+"_"+defines["ATTENTION_HEAD"])
	if _, err := fakeKernels(source); err != nil {
		return 6, "", err.Error()
	}
	return 0, source, ""
}
