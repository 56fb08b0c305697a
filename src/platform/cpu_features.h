// Which instructions this processor has and the operating system lets programs use, of those that
// the architecture does not prescribe.
#pragma once

namespace posenc::platform {

#if defined(__x86_64__)
bool runs_avx2();    // with FMA and F16C, which every processor with AVX2 has
bool runs_avx512();  // F, DQ, BW and VL, with FMA
#endif

}  // namespace posenc::platform
