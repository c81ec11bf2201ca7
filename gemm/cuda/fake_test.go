package cuda

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights"
)

// card is a pretended GPU behind the functions of api: memory with bounds, a stream that takes a
// fixed time per product and per transfer, graphs, events, and products computed on the CPU from the arguments of cuBLASLt alone.
// It counts what is alive and fails if it is told to. It has its own clock, which goes on when the host asks or waits.
type card struct {
	t          *testing.T
	capability int
	blas       uint64         // cublasLtGetVersion
	product    time.Duration  // per launch
	kernel     time.Duration  // per launch of a module's kernel
	transfer   time.Duration  // per asynchronous copy or fill
	query      time.Duration  // per question for an event
	slow       time.Duration  // until then everything takes four times as long: the clock has yet to rise
	call       time.Duration  // per launch of a graph, of the host's time
	fail       map[string]int // call name → calls that still succeed
	free       uint64         // bytes of memory that the driver reports
	limit      uint64         // total memory in bytes; allocations reduce the free memory. 0: the free memory is constant
	lazy       bool           // products compute nothing
	shared     int            // most bytes of dynamic shared memory of a block
	ran        func(FakeLaunch)

	next        uintptr
	alive       map[uintptr]string
	memory      map[uint64][]byte
	host        []fakeHost
	layouts     map[uintptr]fakeLayout
	descs       map[uintptr]map[int32][]byte
	modes       map[uintptr]mode
	preferences map[uintptr]map[int32][]byte
	offers      []fakeOffer // of the heuristic; nil: two, see offered
	algorithms  []fakeOffer // by number
	events      map[uintptr]time.Duration
	graphs      map[uintptr]fakeGraph
	nvrtc       *fakeCompiler
	sources     map[uintptr]string // of NVRTC's programs
	kernels     map[uintptr]*fakeKernel
	launches    []FakeLaunch // of modules' kernels, in order
	products    []FakeProduct
	recording   uintptr // the stream that is captured
	recorded    fakeGraph
	now         time.Duration
	busyUntil   time.Duration
	launched    int // products
	filled      int // asynchronous fills
	failures    int // that were planted and happened
}

// fakeHost is host memory that the driver allocated.
type fakeHost struct {
	at     *byte
	handle uintptr
}

// fakeGraph is the work of a graph.
type fakeGraph struct {
	products, fills int
	takes           time.Duration
	copies          []func()
}

type fakeLayout struct {
	element int32
	rows    int
	cols    int
	stride  int
}

func newCard(t *testing.T) *card {
	c := &card{
		t: t, capability: 90, shared: mostShared, blas: 120605, free: 1 << 20, query: time.Millisecond, fail: map[string]int{}, next: 0x1000,
		alive: map[uintptr]string{}, memory: map[uint64][]byte{}, layouts: map[uintptr]fakeLayout{},
		descs: map[uintptr]map[int32][]byte{}, modes: map[uintptr]mode{}, preferences: map[uintptr]map[int32][]byte{},
		events: map[uintptr]time.Duration{}, graphs: map[uintptr]fakeGraph{},
		sources: map[uintptr]string{}, kernels: map[uintptr]*fakeKernel{},
	}
	c.nvrtc = newFakeCompiler(c)
	return c
}

// ok counts down to an injected failure.
func (c *card) ok(call string) bool {
	n, planted := c.fail[call]
	if planted && n == 0 {
		c.failures++
		return false
	}
	if planted {
		c.fail[call] = n - 1
	}
	return true
}

func (c *card) create(call string, h *uintptr, kind string) bool {
	if !c.ok(call) {
		return false
	}
	c.next += 0x100
	*h = c.next
	c.alive[*h] = kind
	return true
}

func (c *card) destroy(h uintptr, kind string) result {
	if c.alive[h] != kind {
		c.t.Errorf("%s %#x destroyed, it is %q", kind, h, c.alive[h])
		return 1
	}
	delete(c.alive, h)
	return 0
}

// kinds returns the number of live objects by kind.
func (c *card) kinds() map[string]int {
	n := map[string]int{}
	for _, kind := range c.alive {
		n[kind]++
	}
	return n
}

// leaks lists everything that was not freed.
func (c *card) leaks() {
	c.t.Helper()
	for h, kind := range c.alive {
		c.t.Errorf("%s %#x is still alive", kind, h)
	}
}

func pick[T result | status | int32](ok bool, otherwise T) T {
	if ok {
		return 0
	}
	return otherwise
}

// left returns the number of free bytes.
func (c *card) left() uint64 {
	if c.limit == 0 {
		return c.free
	}
	left := c.limit
	for _, m := range c.memory {
		left -= uint64(len(m))
	}
	return left
}

func bytesAt(p *byte, n uint64) []byte { return unsafe.Slice(p, n) }

// region returns the n bytes at address. They must belong to one allocation.
func (c *card) region(address, n uint64) []byte {
	for base, m := range c.memory {
		if base <= address && address+n <= base+uint64(len(m)) {
			return m[address-base:][:n]
		}
	}
	panic(fmt.Sprintf("%d bytes at %#x are not allocated", n, address))
}

func (c *card) api() *api {
	a := &api{libraries: []string{"fake"}}
	c.driver(a)
	c.streams(a)
	c.lt(a)
	c.modules(a)
	c.shares(a)
	functions := c.nvrtc.functions() // once, as in a process
	a.compiler = func() (*compiler, error) {
		if c.nvrtc.missing {
			return nil, ErrNoCompiler
		}
		return functions, nil
	}
	return a
}

func (c *card) driver(a *api) {
	message := append([]byte("PLANTED"), 0)
	say := func(_ result, p **byte) result { *p = &message[0]; return 0 }
	a.cuGetErrorName, a.cuGetErrorString = say, say
	a.cuInit = func(uint32) result { return pick[result](c.ok("cuInit"), 100) }
	a.cuDriverGetVersion = func(v *int32) result { *v = 13000; return 0 }
	a.cuDeviceGetCount = func(n *int32) result { *n = 1; return 0 }
	a.cuDeviceGet = func(d *int32, i int32) result { *d = i; return 0 }
	a.cuDeviceGetName = func(p *byte, n, _ int32) result { copy(bytesAt(p, uint64(n)), "Fake\x00"); return 0 }
	a.cuDeviceGetPCIBusId = func(p *byte, n, _ int32) result { copy(bytesAt(p, uint64(n)), "0000:01:00.0\x00"); return 0 }
	a.cuDeviceTotalMem = func(n *uint64, _ int32) result { *n = 1 << 37; return 0 }
	a.cuDeviceGetAttribute = func(v *int32, attribute, _ int32) result {
		*v = map[int32]int32{16: 132, 38: 4096, 75: int32(c.capability / 10), 76: int32(c.capability % 10)}[attribute]
		return 0
	}
	a.cuCtxCreate = func(h *uintptr, _ uint32, _ int32) result {
		return pick[result](c.create("cuCtxCreate", h, "context"), 46)
	}
	a.cuCtxDestroy = func(h uintptr) result { // takes the memory and events with it
		for other, kind := range c.alive {
			if kind == "memory" || kind == "event" || kind == "exec" || kind == "module" {
				delete(c.alive, other)
			}
		}
		return c.destroy(h, "context")
	}
	a.cuCtxSynchronize = func() result {
		c.now = max(c.now, c.busyUntil)
		return pick[result](c.ok("cuCtxSynchronize") && c.recording == 0, 900)
	}
	a.cuMemGetInfo = func(free, total *uint64) result { *free, *total = c.left(), 1<<37; return 0 }
	a.cuMemAlloc = func(p *uint64, n uint64) result {
		var h uintptr
		if c.limit > 0 && n > c.left() || !c.create("cuMemAlloc", &h, "memory") {
			return errorOutOfMemory
		}
		c.next += uintptr(n+255) / 256 * 256 // addresses are multiples of 256
		*p, c.memory[uint64(h)] = uint64(h), make([]byte, n)
		return 0
	}
	a.cuMemFree = func(p uint64) result { delete(c.memory, p); return c.destroy(uintptr(p), "memory") }
	a.cuMemAllocHost = func(p **byte, n uint64) result {
		var h uintptr
		if !c.create("cuMemAllocHost", &h, "host memory") {
			return errorOutOfMemory
		}
		*p = unsafe.SliceData(make([]byte, n))
		c.host = append(c.host, fakeHost{*p, h})
		return 0
	}
	a.cuMemFreeHost = func(p *byte) result {
		i := slices.IndexFunc(c.host, func(h fakeHost) bool { return h.at == p })
		return c.destroy(c.host[i].handle, "host memory")
	}
	a.cuMemcpyHtoD = func(to uint64, from *byte, n uint64) result { copy(c.region(to, n), bytesAt(from, n)); return 0 }
	a.cuMemcpyDtoH = func(to *byte, from, n uint64) result { copy(bytesAt(to, n), c.region(from, n)); return 0 }
	a.cuMemcpyDtoD = func(to, from, n uint64) result { copy(c.region(to, n), c.region(from, n)); return 0 }
	a.cuMemsetD8 = func(to uint64, v uint8, n uint64) result {
		m := c.region(to, n)
		for i := range m {
			m[i] = v
		}
		return 0
	}
}

func (c *card) streams(a *api) {
	a.cuStreamCreate = func(h *uintptr, _ uint32) result { return pick[result](c.create("cuStreamCreate", h, "stream"), 1) }
	a.cuStreamDestroy = func(h uintptr) result { return c.destroy(h, "stream") }
	a.cuStreamSynchronize = func(h uintptr) result { return pick[result](h == 0 && c.ok("cuStreamSynchronize"), 400) }
	a.cuStreamBeginCapture = func(h uintptr, _ int32) result {
		if !c.ok("cuStreamBeginCapture") || c.recording != 0 || c.alive[h] != "stream" {
			return 1
		}
		c.recording, c.recorded = h, fakeGraph{}
		return 0
	}
	a.cuStreamEndCapture = func(_ uintptr, graph *uintptr) result {
		c.recording = 0
		if !c.create("cuStreamEndCapture", graph, "graph") {
			return 901
		}
		c.graphs[*graph] = c.recorded
		return 0
	}
	a.cuGraphInstantiate = func(exec *uintptr, graph uintptr, _ uint64) result {
		if !c.create("cuGraphInstantiate", exec, "exec") {
			return 1
		}
		c.graphs[*exec] = c.graphs[graph]
		return 0
	}
	a.cuGraphLaunch = func(exec, _ uintptr) result {
		if !c.ok("cuGraphLaunch") || c.alive[exec] != "exec" {
			return 700
		}
		c.now += c.call
		c.work(c.graphs[exec])
		return 0
	}
	a.cuMemcpyDtoDAsync = func(to, from, n uint64, stream uintptr) result {
		if !c.ok("cuMemcpyDtoDAsync") || c.alive[stream] != "stream" || to < from+n && from < to+n {
			return 1
		}
		target, source := c.region(to, n), c.region(from, n)
		return c.queue(fakeGraph{takes: c.transfer, copies: []func(){func() { copy(target, source) }}})
	}
	a.cuMemsetD32Async = func(to uint64, word uint32, n uint64, stream uintptr) result {
		if !c.ok("cuMemsetD32Async") || c.alive[stream] != "stream" || to%4 != 0 {
			return 1
		}
		target := c.region(to, 4*n)
		target = target[:min(len(target), 1<<10)] // tests do not read the rest, which would take time
		return c.queue(fakeGraph{fills: 1, takes: c.transfer, copies: []func(){func() {
			for i := 0; i < len(target); i += 4 {
				binary.LittleEndian.PutUint32(target[i:], word)
			}
		}}})
	}
	a.cuGraphDestroy = func(h uintptr) result { return c.destroy(h, "graph") }
	a.cuGraphExecDestroy = func(h uintptr) result { return c.destroy(h, "exec") }
	a.cuEventCreate = func(h *uintptr, _ uint32) result { return pick[result](c.create("cuEventCreate", h, "event"), 1) }
	a.cuEventRecord = func(h, _ uintptr) result {
		if !c.ok("cuEventRecord") || c.alive[h] != "event" || c.recording != 0 {
			return 400
		}
		c.work(fakeGraph{})
		c.events[h] = c.busyUntil
		return 0
	}
	a.cuEventQuery = func(h uintptr) result {
		if !c.ok("cuEventQuery") {
			return 700
		}
		c.now += c.query
		return pick[result](c.events[h] <= c.now, errorNotReady)
	}
	a.cuEventElapsedTime = func(ms *float32, from, to uintptr) result {
		begin, begun := c.events[from]
		end, ended := c.events[to]
		switch {
		case !c.ok("cuEventElapsedTime") || !begun || !ended || c.alive[from] != "event" || c.alive[to] != "event":
			return 400
		case max(begin, end) > c.now:
			return errorNotReady
		case end < begin:
			c.t.Error("an event is measured from a later one")
		}
		*ms = float32((end - begin).Seconds() * 1e3)
		return 0
	}
	a.cuEventDestroy = func(h uintptr) result { return c.destroy(h, "event") }
}

// queue appends work to the queue, or records it.
func (c *card) queue(g fakeGraph) result {
	if c.recording == 0 {
		c.work(g)
		return 0
	}
	r := &c.recorded
	r.products, r.fills, r.takes = r.products+g.products, r.fills+g.fills, r.takes+g.takes
	r.copies = append(r.copies, g.copies...)
	return 0
}

// work adds a graph's time to the stream. Its copies are visible at once.
func (c *card) work(g fakeGraph) {
	begin := max(c.busyUntil, c.now)
	if begin < c.slow {
		g.takes *= 4
	}
	c.busyUntil = begin + g.takes
	c.launched += g.products
	c.filled += g.fills
	for _, f := range g.copies {
		f()
	}
}

func (c *card) lt(a *api) {
	a.cublasLtGetVersion = func() uint64 { return c.blas }
	a.cublasLtGetStatusString = func(s status) string { return fmt.Sprintf("status %d", s) }
	a.cublasLtCreate = func(h *uintptr) status { return pick[status](c.create("cublasLtCreate", h, "handle"), 1) }
	a.cublasLtDestroy = func(h uintptr) status { return status(c.destroy(h, "handle")) }
	a.cublasLtMatmulDescCreate = func(h *uintptr, compute, scale int32) status {
		if !c.create("cublasLtMatmulDescCreate", h, "desc") {
			return 3
		}
		c.descs[*h], c.modes[*h] = map[int32][]byte{}, mode{compute, scale}
		return 0
	}
	a.cublasLtMatmulDescSet = func(h uintptr, attribute int32, p *byte, n uint64) status {
		c.descs[h][attribute] = append([]byte(nil), bytesAt(p, n)...)
		return pick[status](c.ok("cublasLtMatmulDescSet"), 7)
	}
	a.cublasLtMatmulDescDestroy = func(h uintptr) status { return status(c.destroy(h, "desc")) }
	a.cublasLtLayoutCreate = func(h *uintptr, element int32, rows, cols uint64, stride int64) status {
		if !c.create("cublasLtLayoutCreate", h, "layout") {
			return 3
		}
		c.layouts[*h] = fakeLayout{element, int(rows), int(cols), int(stride)}
		return 0
	}
	a.cublasLtLayoutDestroy = func(h uintptr) status { return status(c.destroy(h, "layout")) }
	a.cublasLtPreferenceCreate = func(h *uintptr) status {
		if !c.create("cublasLtPreferenceCreate", h, "preference") {
			return 3
		}
		c.preferences[*h] = map[int32][]byte{}
		return 0
	}
	a.cublasLtPreferenceSet = func(h uintptr, attribute int32, p *byte, n uint64) status {
		c.preferences[h][attribute] = append([]byte(nil), bytesAt(p, n)...)
		return pick[status](c.ok("cublasLtPreferenceSet"), 7)
	}
	a.cublasLtPreferenceDestroy = func(h uintptr) status { return status(c.destroy(h, "preference")) }
	a.cublasLtGetHeuristic = c.heuristic
	a.cublasLtAlgoConfigGet = func(algo *algorithm, attribute int32, p *byte, n uint64, _ *uint64) status {
		bytesAt(p, n)[0] = byte(10 + attribute)
		return 0
	}
	a.cublasLtAlgoCapabilityGet = func(algo *algorithm, _ int32, p *byte, n uint64, _ *uint64) status {
		binary.LittleEndian.PutUint64(bytesAt(p, n), algo.data[0])
		return 0
	}
	a.cublasLtMatmul = c.matmul
}

// fakeOffer is a kernel of the pretended cuBLASLt.
type fakeOffer struct {
	flags   uint64 // of its implementation
	takes   time.Duration
	aligned [4]uint64 // bytes that the addresses of A, B, C and D must be a multiple of; 0: any
	refuses bool      // to run
}

// offered returns the kernels of the heuristic. By default it offers a tensor-core kernel, then one without, each for
// addresses of the alignment that it was told of. The mask is left to the caller, so that what the caller checks itself
// is seen.
func (c *card) offered(pref uintptr) []fakeOffer {
	if c.offers != nil {
		return c.offers
	}
	aligned := [4]uint64{256, 256, 256, 256}
	for i := range aligned {
		if v := c.preferences[pref][int32(5+i)]; v != nil {
			aligned[i] = uint64(binary.LittleEndian.Uint32(v))
		}
	}
	return []fakeOffer{{flags: 0x202, takes: c.product, aligned: aligned}, {flags: 0x201, takes: c.product, aligned: aligned}}
}

// heuristic gives the offers. The float16 pedantic mode is not offered.
func (c *card) heuristic(_, desc, _, _, _, _, pref uintptr, want int32, found *heuristic, count *int32) status {
	offers := c.offered(pref)
	if !c.ok("cublasLtGetHeuristic") || c.modes[desc].compute == 65 || int(want) < len(offers) {
		return 15
	}
	for i, o := range offers {
		number := len(c.algorithms)
		c.algorithms = append(c.algorithms, o)
		unsafe.Slice(found, want)[i] = heuristic{algo: algorithm{[8]uint64{o.flags, uint64(number)}}, waves: 1}
	}
	*count = int32(len(offers))
	return 0
}

// matmul computes column-major D = op(A)·B + beta·C, where C is D. A real library gets no other information.
func (c *card) matmul(_, desc uintptr, alpha *byte, aAt uint64, aL uintptr, bAt uint64, bL uintptr, beta *byte, cAt uint64, cL uintptr, dAt uint64, dL uintptr, algo *algorithm, _, _ uint64, _ uintptr) status {
	offer := c.algorithms[algo.data[1]]
	if !c.ok("cublasLtMatmul") || offer.refuses {
		return 13
	}
	for i, at := range []uint64{aAt, bAt, cAt, dAt} {
		if at%max(1, offer.aligned[i]) != 0 {
			return 7
		}
	}
	c.products = append(c.products, FakeProduct{X: Address(bAt), W: Address(aAt), Y: Address(dAt)})
	work := fakeGraph{products: 1, takes: offer.takes}
	if c.recording != 0 {
		return status(c.queue(work))
	}
	A, B, D := c.layouts[aL], c.layouts[bL], c.layouts[dL]
	transposed := binary.LittleEndian.Uint32(c.descs[desc][3]) == 1
	m, k := A.rows, A.cols
	if transposed {
		m, k = k, m
	}
	flippedB := c.descs[desc][4] != nil && binary.LittleEndian.Uint32(c.descs[desc][4]) == 1
	rowsB, colsB := B.rows, B.cols
	if flippedB {
		rowsB, colsB = colsB, rowsB
	}
	if k != rowsB || D.rows != m || D.cols != colsB || cAt != dAt || cL != dL {
		return 7
	}
	for _, l := range []fakeLayout{A, B, D} {
		if l.stride < l.rows {
			return 7
		}
	}
	one := ones[c.modes[desc].scale]
	factors := func(p *byte) string { return string(bytesAt(p, uint64(len(one)))) }
	if factors(alpha) != string(one) || factors(beta) != string(one) && factors(beta) != string(zero[:len(one)]) {
		return 7
	}
	from := formats[A.element]
	if from.Bits == 8 && (A.rows%16 != 0 || A.cols%16 != 0 || B.cols%16 != 0) {
		return 15
	}
	if A.element == 28 { // scales must point at a float32 1
		for _, attribute := range []int32{17, 18} {
			if at := binary.LittleEndian.Uint64(c.descs[desc][attribute]); binary.LittleEndian.Uint32(c.region(at, 4)) != 0x3F800000 {
				return 7
			}
		}
	}
	if c.lazy {
		c.work(work)
		return 0
	}
	aM, bM, dM := c.matrix(A, aAt), c.matrix(B, bAt), c.matrix(D, dAt)
	for i := range m {
		for j := range D.cols {
			var sum float64
			for l := range k {
				at := i + l*A.stride
				if transposed {
					at = l + i*A.stride
				}
				atB := l + j*B.stride
				if flippedB {
					atB = j + l*B.stride
				}
				sum += float64(from.Value(from.Elem(aM, at))) * float64(from.Value(from.Elem(bM, atB)))
			}
			store(D.element, dM, i+j*D.stride, sum, factors(beta) == string(one))
		}
	}
	c.work(work)
	return 0
}

// formats maps the numbers of cudaDataTypes to formats. A product's result of 32-bit integers is stored apart.
var formats = func() map[int32]weights.Format {
	all := map[int32]weights.Format{}
	for element, d := range map[int32]weights.DType{0: weights.F32, 2: weights.F16, 3: weights.I8, 14: weights.BF16, 28: weights.F8E4M3} {
		all[element], _ = d.Format()
	}
	return all
}()

// matrix returns the memory of a matrix, from its first element to its last.
func (c *card) matrix(l fakeLayout, at uint64) []byte {
	bytes := 4
	if f, ok := formats[l.element]; ok {
		bytes = f.Bits / 8
	}
	return c.region(at, uint64(((l.cols-1)*l.stride+l.rows)*bytes))
}

// store puts v, or adds it to what is there, which is read only then.
func store(element int32, to []byte, index int, v float64, add bool) {
	if element == 10 {
		if add {
			v += float64(int32(binary.LittleEndian.Uint32(to[4*index:])))
		}
		binary.LittleEndian.PutUint32(to[4*index:], uint32(int32(v)))
		return
	}
	f := formats[element]
	if add {
		v += float64(f.Value(f.Elem(to, index)))
	}
	f.SetElem(to, index, f.FromValue(float32(v)))
}

// operands are random x and w for p, of a scale that keeps every type in range.
func operands(p gemm.Problem, seed uint64) (x, w gemm.Matrix) {
	sx, sw := 1.0, 0.02
	if p.Type == arith.INT8 {
		sx, sw = 40, 40
	}
	return normal(p.Type.Operand(), p.M, p.K, 0, sx, seed), normal(p.Type.Operand(), p.N, p.K, 0, sw, seed+1)
}

// normal draws a matrix of normally distributed elements.
func normal(d weights.DType, rows, cols int, mean, sigma float64, seed uint64) gemm.Matrix {
	p := pattern.MustParse(fmt.Sprintf("normal(%g,%g)", mean, sigma))
	data, err := p.Generate(context.Background(), pattern.Spec{DType: d, Rows: rows, Cols: cols, Seed: seed}, 1)
	if err != nil {
		panic(err)
	}
	return gemm.Matrix{DType: d, Rows: rows, Cols: cols, Data: data}
}

// check multiplies on a device, and compares with the reference.
func check(d *Device, p gemm.Problem, x, w gemm.Matrix) (gemm.Deviation, error) {
	y, err := d.Multiply(p, x, w)
	if err != nil {
		return gemm.Deviation{}, err
	}
	return gemm.Compare(p, x, w, y)
}
