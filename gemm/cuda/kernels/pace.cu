// A batch that pauses runs this kernel, of one thread, after every burst of its products. The kernel adds up how long the
// bursts took and how many cycles the multiprocessor's clock counted meanwhile, and waits until the gap is over.

struct Pace {
  double period;            // nanoseconds of an execution, gaps included
  unsigned long long since; // when the burst began, by the global timer
  long long cycles;         // by the multiprocessor's counter at that time
  unsigned long long sm;    // the multiprocessor
  unsigned long long bursts;
  unsigned long long busy;        // nanoseconds of all bursts
  unsigned long long counted;     // nanoseconds of the bursts that began and ended on one multiprocessor
  unsigned long long countedCycles;
};

__device__ __forceinline__ unsigned long long nanoseconds() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
  return t;
}

__device__ __forceinline__ unsigned multiprocessor() {
  unsigned id;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  return id;
}

// share is the burst's share of the work of an execution; 0: the first burst is about to begin.
extern "C" __global__ void pace(Pace* state, double share) {
  long long cycles = clock64();
  unsigned long long now = nanoseconds();
  Pace s = *state;
  if (share == 0) {
    s.bursts = s.busy = s.counted = s.countedCycles = 0;
  } else {
    unsigned long long burst = now - s.since;
    s.bursts++;
    s.busy += burst;
    if (s.sm == multiprocessor()) {
      s.counted += burst;
      s.countedCycles += cycles - s.cycles;
    }
    // Gaps vary by half of their mean, evenly, so that no sensor's sampling falls into step with them.
    double turn = s.bursts * 0.6180339887498949;
    double gap = (share * s.period - burst) * (0.5 + turn - floor(turn));
    while (gap > 0 && nanoseconds() - now < gap) __nanosleep(500);
  }
  s.sm = multiprocessor();
  s.since = nanoseconds();
  s.cycles = clock64();
  *state = s;
}
