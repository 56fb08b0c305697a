// Which instructions this processor has and the operating system lets programs use.
#pragma once

namespace posenc::platform {

bool runs_avx2();    // with FMA and F16C, which every processor with AVX2 has
bool runs_avx512();  // F, DQ, BW and VL, with FMA

}  // namespace posenc::platform
