// Warpgroup instructions on operands in shared memory, and the barriers between threads that write operands and those that
// multiply. An operand has 64 inputs a row, 128 bytes, in the 128-byte swizzle: chunk c of 16 bytes of row r lies at
// c xor (r modulo 8).

namespace dequantise {

__device__ __forceinline__ void barrierInit(unsigned barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void barrierArrive(unsigned barrier) {
  asm volatile("{\n.reg .b64 t;\nmbarrier.arrive.shared::cta.b64 t, [%0];\n}" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void barrierWait(unsigned barrier, int parity) {
  int done;
  do
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.s32 %0, 1, 0, p;\n}"
                 : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
  while (!done);
}

// swizzled describes the operand at an address, a multiple of 1024.
__device__ __forceinline__ unsigned long long swizzled(unsigned address) {
  return static_cast<unsigned long long>((address & 0x3ffff) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

// published makes this thread's writes to shared memory visible to warpgroup instructions.
__device__ __forceinline__ void published() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// WARPGROUP_REGISTERS and WARPGROUP_SUMS are the sums of an instruction of 256 columns.
#define WARPGROUP_REGISTERS \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15" \
  ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31" \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47" \
  ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63" \
  ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79" \
  ",%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95" \
  ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111" \
  ",%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define WARPGROUP_SUM(I) "+f"(d[I][0]), "+f"(d[I][1]), "+f"(d[I][2]), "+f"(d[I][3])
#define WARPGROUP_SUMS \
  WARPGROUP_SUM(0), WARPGROUP_SUM(1), WARPGROUP_SUM(2), WARPGROUP_SUM(3), \
  WARPGROUP_SUM(4), WARPGROUP_SUM(5), WARPGROUP_SUM(6), WARPGROUP_SUM(7), \
  WARPGROUP_SUM(8), WARPGROUP_SUM(9), WARPGROUP_SUM(10), WARPGROUP_SUM(11), \
  WARPGROUP_SUM(12), WARPGROUP_SUM(13), WARPGROUP_SUM(14), WARPGROUP_SUM(15), \
  WARPGROUP_SUM(16), WARPGROUP_SUM(17), WARPGROUP_SUM(18), WARPGROUP_SUM(19), \
  WARPGROUP_SUM(20), WARPGROUP_SUM(21), WARPGROUP_SUM(22), WARPGROUP_SUM(23), \
  WARPGROUP_SUM(24), WARPGROUP_SUM(25), WARPGROUP_SUM(26), WARPGROUP_SUM(27), \
  WARPGROUP_SUM(28), WARPGROUP_SUM(29), WARPGROUP_SUM(30), WARPGROUP_SUM(31)

// settle stops the compiler from moving uses of the sums across this point.
__device__ __forceinline__ void settle(float (&d)[32][4]) {
#pragma unroll
  for (int i = 0; i < 32; i++)
#pragma unroll
    for (int c = 0; c < 4; c++) asm volatile("" : "+f"(d[i][c])::"memory");
}

template <int N>
__device__ __forceinline__ void finish() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

} // namespace dequantise
